import { z } from 'zod';
import { TokenClaims } from '../contracts/auth.js';
import { ToolCallRequest } from '../contracts/tools.js';
import { type Outcome, unsent } from './tool-result.js';

/** A call on its way to the agent that was chosen for it; plain JSON. */
export const PlacedCall = z.object({
  /** `call_…` */
  call_id: z.string(),
  tenant_id: z.string(),
  /** The agent that it is for. */
  target: z.object({
    instance_id: z.string(),
    agent_type: z.string(),
    deployment_mode: z.enum(['hosted', 'connected']),
  }),
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  caller: z.object({ agent_type: z.string(), instance_id: z.string().optional() }),
  session_id: z.string().optional(),
  /** Milliseconds left when it was placed. */
  deadline_ms: z.number(),
  idempotency_key: z.string(),
  /** With this call as the last. */
  chain: z.array(z.object({ instance_id: z.string(), tool: z.string() })),
  traceparent: z.string(),
});
export type PlacedCall = z.infer<typeof PlacedCall>;

/** Brings a call to an agent and its answer back. An aborted signal ends it: the agent is told, the answer is not wanted any more. */
export type Deliver = (call: PlacedCall, signal: AbortSignal) => Promise<Outcome>;

/** A call that came to one node by HTTP, and is part of what an agent does for another: that one knows the chain. Plain JSON. */
export const ForwardedCall = z.object({
  /** `call_…`, of the forwarding only. */
  call_id: z.string(),
  token: TokenClaims,
  body: ToolCallRequest,
  traceparent: z.string().optional(),
});
export type ForwardedCall = z.infer<typeof ForwardedCall>;

/** Makes a forwarded call where it belongs. */
export type Forward = (call: ForwardedCall, signal: AbortSignal) => Promise<Outcome>;

/** A deregistered instance, and its newest connection at that moment: a later one is welcome. Plain JSON. */
export const DeregisteredAgent = z.object({ tenant_id: z.string(), instance_id: z.string(), epoch: z.number() });
export type DeregisteredAgent = z.infer<typeof DeregisteredAgent>;

/** Closes the agent's connection, if this node has it. */
export type CloseDeregistered = (agent: DeregisteredAgent) => void;

/** The way to the nodes that hold agents' sockets. A call reaches a node once at most. */
export interface NodeLink {
  /**
   * Has a node bring a call to its agent. Never rejects; a node that is gone, before or meanwhile, is TARGET_UNAVAILABLE. The caller
   * sees to the deadline and gives up by the signal.
   */
  call(nodeId: string, call: PlacedCall, signal: AbortSignal): Promise<Outcome>;
  /** As `call`, with a call that is to be made by that node. */
  forward(nodeId: string, call: ForwardedCall, signal: AbortSignal): Promise<Outcome>;
  /** Has a node close a deregistered agent's socket. Best effort: the node finds out by itself a little later. */
  deregistered(nodeId: string, agent: DeregisteredAgent): void;
  /** Calls for this node's agents go to `deliver` from now on. */
  serve(deliver: Deliver): void;
  /** Calls that this node is to make go to `forward` from now on. */
  serveForwarded(forward: Forward): void;
  /** What is said of this node's agents goes to `close` from now on. */
  serveDeregistered(close: CloseDeregistered): void;
  /** Ends what is under way. */
  close(): Promise<void>;
}

/** Where nobody can be reached. */
export const NOBODY: Outcome = unsent('TARGET_UNAVAILABLE', 'The node that holds the agent cannot be reached.');

/** The link of a process that is the only one. */
export function createLocalLink(nodeId: string): NodeLink {
  let deliver: Deliver | undefined;
  let close: CloseDeregistered | undefined;
  return {
    call: async (node, call, signal) => (node === nodeId && deliver ? deliver(call, signal) : NOBODY),
    forward: async () => NOBODY,
    serve: (handler) => {
      deliver = handler;
    },
    serveForwarded: () => undefined,
    deregistered: (node, agent) => {
      if (node === nodeId) close?.(agent);
    },
    serveDeregistered: (handler) => {
      close = handler;
    },
    close: async () => {
      deliver = undefined;
      close = undefined;
    },
  };
}

/** The id by which a hosted agent knows a call: its own calls may come to another node, and have to find back. */
export function namedAt(callId: string, nodeId: string): string {
  return `${callId}.${nodeId}`;
}

/** What such an id says; undefined when it is none. */
export function readNamed(id: string): { call_id: string; node: string } | undefined {
  const [, call_id, node] = /^(call_[0-9a-f-]{36})\.(\w[\w-]{0,63})$/.exec(id) ?? [];
  return call_id !== undefined && node !== undefined ? { call_id, node } : undefined;
}
