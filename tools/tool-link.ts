import { z } from 'zod';
import { DeploymentMode } from '../contracts/api/agents.js';
import { TokenClaims } from '../contracts/api/auth.js';
import { ToolCallRequest } from '../contracts/api/tools.js';
import { type Outcome, unsent } from './tool-result.js';

/** A call to the agent that was chosen for it. Plain JSON: it crosses nodes. */
export const RoutedCall = z.object({
  /** `call_…` */
  call_id: z.string(),
  tenant_id: z.string(),
  target: z.object({ instance_id: z.string(), agent_type: z.string(), deployment_mode: DeploymentMode }),
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  caller: z.object({ agent_type: z.string(), instance_id: z.string().optional() }),
  session_id: z.string().optional(),
  /** Milliseconds left when the call was routed. */
  deadline_ms: z.number(),
  idempotency_key: z.string(),
  /** The last link is this call. */
  chain: z.array(z.object({ instance_id: z.string(), tool: z.string() })),
  traceparent: z.string(),
  /** The message that the call is a part of, in whose trace its span is. Absent for a call that is part of none. */
  message_id: z.string().optional(),
});
export type RoutedCall = z.infer<typeof RoutedCall>;

/** A call that came by HTTP to one node and is part of a pending call of another node, which knows the chain. Plain JSON. */
export const ForwardedCall = z.object({
  /** `call_…`; identifies the forwarding only. */
  call_id: z.string(),
  token: TokenClaims,
  body: ToolCallRequest,
  traceparent: z.string().optional(),
});
export type ForwardedCall = z.infer<typeof ForwardedCall>;

/** A deregistered instance and the epoch of its newest connection then; newer connections stay open. Plain JSON. */
export const DeregisteredAgent = z.object({ tenant_id: z.string(), instance_id: z.string(), epoch: z.number() });
export type DeregisteredAgent = z.infer<typeof DeregisteredAgent>;

/** What a node does when another one asks. Aborting a signal cancels the call. */
export interface NodeHandlers {
  /** Sends a call to an agent of this node, which is notified when the call is canceled, and returns the outcome. */
  call(call: RoutedCall, signal: AbortSignal): Promise<Outcome>;
  /** Makes a forwarded call. */
  forward(call: ForwardedCall, signal: AbortSignal): Promise<Outcome>;
  /** Closes the agent's connection if this node holds it. */
  deregistered(agent: DeregisteredAgent): void;
}
export type Deliver = NodeHandlers['call'];

/** Transport of tool calls between nodes. A call is made on a node at most once. */
export interface NodeLink {
  /**
   * Sends a call to the node that holds the agent's socket. Never rejects: if the node is dead, or dies meanwhile, the outcome is
   * TARGET_UNAVAILABLE. The caller enforces the deadline and cancels by the signal.
   */
  call(meshId: string, call: RoutedCall, signal: AbortSignal): Promise<Outcome>;
  /** As `call`, for a call that the other node is to make. */
  forward(meshId: string, call: ForwardedCall, signal: AbortSignal): Promise<Outcome>;
  /** Asks a node to close a deregistered agent's socket. Best effort: the node's reconciliation closes it otherwise. */
  deregistered(meshId: string, agent: DeregisteredAgent): void;
  /** Adds what this node does for others, itself included; handlers that were given before stay. */
  serve(handlers: Partial<NodeHandlers>): void;
  /** Ends the calls in flight. */
  close(): Promise<void>;
}

/** The outcome when the target node cannot be reached. */
export const NODE_UNREACHABLE = unsent('TARGET_UNAVAILABLE', 'The node that holds the agent cannot be reached.');

/** The link of a single process. */
export function createLocalLink(meshId: string): NodeLink {
  let served: Partial<NodeHandlers> = {};
  return {
    call: async (node, call, signal) => {
      if (node !== meshId) return NODE_UNREACHABLE;
      return (await served.call?.(call, signal)) ?? NODE_UNREACHABLE;
    },
    forward: async () => NODE_UNREACHABLE,
    deregistered: (node, agent) => {
      if (node === meshId) served.deregistered?.(agent);
    },
    serve: (handlers) => {
      served = { ...served, ...handlers };
    },
    close: async () => {
      served = {};
    },
  };
}

/** The id of a call for a hosted agent. It names the node, because the agent's nested calls may arrive at any node. */
export function hostedCallId(callId: string, meshId: string): string {
  return `${callId}.${meshId}`;
}

/** Parses an id of `hostedCallId`; undefined if it is not one. */
export function parseHostedCallId(id: string): { call_id: string; node: string } | undefined {
  const [, call_id, node] = /^(call_[0-9a-f-]{36})\.(\w[\w-]{0,63})$/.exec(id) ?? [];
  return call_id !== undefined && node !== undefined ? { call_id, node } : undefined;
}
