import { z } from 'zod';
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

/** The way to the nodes that hold agents' sockets. A call reaches a node once at most. */
export interface NodeLink {
  /**
   * Has a node bring a call to its agent. Never rejects; a node that is gone, before or meanwhile, is TARGET_UNAVAILABLE. The caller
   * sees to the deadline and gives up by the signal.
   */
  call(nodeId: string, call: PlacedCall, signal: AbortSignal): Promise<Outcome>;
  /** Calls for this node's agents go to `deliver` from now on. */
  serve(deliver: Deliver): void;
  /** Ends what is under way. */
  close(): Promise<void>;
}

/** Where nobody can be reached. */
export const NOBODY: Outcome = unsent('TARGET_UNAVAILABLE', 'The node that holds the agent cannot be reached.');

/** The link of a process that is the only one. */
export function createLocalLink(nodeId: string): NodeLink {
  let deliver: Deliver | undefined;
  return {
    call: async (node, call, signal) => (node === nodeId && deliver ? deliver(call, signal) : NOBODY),
    serve: (handler) => {
      deliver = handler;
    },
    close: async () => {
      deliver = undefined;
    },
  };
}
