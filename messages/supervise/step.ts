/** Why a message failed, as an operator reads it in the Temporal UI. */
export interface StepError {
  code: string;
  message: string;
}

const REASON_MAX_CHARS = 512;

/** The reason of a failed message in the length that a history takes. */
export function stepError(code: string | null, message: string | null): { error?: StepError } {
  return code === null ? {} : { error: { code, message: (message ?? '').slice(0, REASON_MAX_CHARS).toWellFormed() } };
}

/**
 * What the workflow of a message does next. Identifiers, states, times and the reason of a failure only: this goes into a history
 * (architecture.md, decision 1).
 */
export type Step =
  | { kind: 'done'; state: string; agent_type: string | null; error?: StepError }
  /** The row is canceled; the agent that holds the dispatch is to hear of it. */
  | { kind: 'deliver_cancel'; dispatch_id: string; mesh_id: string; agent_type: string | null }
  /** Carry out (or adopt) this dispatch. `mesh_id` null: a hosted agent, and any node may begin; else the node that has it. */
  | {
      kind: 'dispatch';
      dispatch_id: string;
      instance_id: string;
      agent_type: string;
      mesh_id: string | null;
      deployment_mode: 'hosted' | 'connected';
      attempt: number;
      deadline_ms: number;
    }
  | { kind: 'wait_agent'; since: string; retry_ms: number; agent_type: string | null }
  | {
      kind: 'wait_input';
      request_id: string;
      agent_type: string | null;
      request_kind: string;
      source: string;
      since: string;
      expires_at: string;
      expires_ms: number;
    };

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5_000;
/** Of a wait that lasts: a decision may wait for a day. */
const LONG_RETRY_MAX_MS = 60_000;

/**
 * How long to wait before the next look for a free agent, unless the message is called earlier (see `wakeQueued`): short at first, five
 * seconds in the first minute, then a twelfth of the time waited, a minute at most.
 */
export function retryDelayMs(waitedMs: number): number {
  const soon = Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, Math.floor(waitedMs / 2)));
  return Math.max(soon, Math.min(LONG_RETRY_MAX_MS, Math.floor(waitedMs / 12)));
}
