import type { Tx } from '../../db/pool.js';
import type { StoredError } from '../dispatch/message-end.js';
import type { RunningRow } from '../read/rows.js';

const REASON_CHARS_MAX = 512;

/** The reason of a failed message, bounded for a workflow history. */
export function stepError(code: string | null, message: string | null): { error?: StoredError } {
  return code === null ? {} : { error: { code, message: (message ?? '').slice(0, REASON_CHARS_MAX).toWellFormed() } };
}

/** The next step of a message's workflow. It goes into the history, so it has only identifiers, states, times and the reason of a failure. */
export type Step =
  | { kind: 'done'; state: string; agent_type: string | null; error?: StoredError }
  /** The message is canceled: send CANCELED to the agent that has the dispatch. */
  | { kind: 'deliver_cancel'; dispatch_id: string; mesh_id: string; agent_type: string | null }
  /** Run (or adopt) this dispatch. `mesh_id`: the node that has it; null for a hosted agent that any node may call. */
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
  /** The evaluators of the tenant's policies are busy, or were asked just now. */
  | { kind: 'wait_policy'; retry_ms: number; agent_type: string | null }
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
      /** The dispatch whose tool call waits; its node goes on with it. Absent where none is at work. */
      dispatch_id?: string;
      /** Until the next reminder or the end of the time. Absent, as `awaited`, from histories of before there were reminders. */
      wait_ms?: number;
      /** What is awaited, from whom, and how to decide; Markdown for the Temporal UI. */
      awaited?: string;
    };

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5_000;
/** For waits of up to a day: a human's answer waits as long as its request was open. */
const LONG_RETRY_MAX_MS = 60_000;

/**
 * The pause before the next attempt to find a free agent, unless the message is woken earlier (see `wakeQueued`): short at first, five
 * seconds within the first minute, then a twelfth of the time waited, at most a minute.
 */
export function retryDelayMs(waitedMs: number): number {
  const soon = Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, Math.floor(waitedMs / 2)));
  return Math.max(soon, Math.min(LONG_RETRY_MAX_MS, Math.floor(waitedMs / 12)));
}

/** A message's wait for an agent. */
export type RouteWait = Awaited<ReturnType<typeof routeWait>>;

/**
 * Since when a message waits for an agent, for how long so far, and how long it still may, in milliseconds: negative when its time is over
 * (db/functions/routing/waits.sql).
 * @param offlineMs how long it waits while no agent of its target is online
 */
export async function routeWait(tx: Tx, row: RunningRow, offlineMs: number, now: Date) {
  const [wait] = await tx.query<{ since: Date; waited_ms: number; left_ms: number }>(
    'SELECT since, waited_ms, left_ms FROM route_wait($1, $2, $3, $4)',
    [row.tenant_id, row.message_id, now, offlineMs],
    'route_wait',
  );
  if (!wait) throw new Error('route_wait gave no row');
  return { since: wait.since, waitedMs: wait.waited_ms, leftMs: wait.left_ms };
}
