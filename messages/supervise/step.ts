import type { WaitsFor } from '../../contracts/api/messages.js';
import type { RunningRow } from '../read/rows.js';

/** The reason of a failed message, for a workflow history: only its code, because agents write its text. */
export function stepError(code: string | null): { error?: { code: string } } {
  return code === null ? {} : { error: { code } };
}

/** A message that is over. */
export interface DoneStep {
  kind: 'done';
  state: string;
  agent_type: string | null;
  error?: { code: string };
}

/** A message that waits. */
export interface WaitStep {
  kind: 'waits';
  /** As in messages/read/waits.ts, but `room` for all queued messages. `result`: an agent has the message. */
  waits_for: Exclude<WaitsFor['kind'], 'agent' | 'quota'> | 'result';
  state: string;
  agent_type: string | null;
  /** What is awaited, of whom, since when and until when; Markdown for the Temporal UI. */
  details: string;
  /** Milliseconds after which somebody has to look again, unless the message is woken before. */
  wait_ms: number;
}

/** Where a message stands. It goes into the history of its workflow, so it has only identifiers, states, times and the code of a failure. */
export type Step = DoneStep | WaitStep;

/** A workflow looks again after so long at the latest, in milliseconds, so that a lost signal delays it no longer. */
const LOOK_MAX_MS = 600_000;

/** The step of a message that waits. @param wait_ms at most `LOOK_MAX_MS` */
export function waits(
  row: RunningRow,
  waits_for: WaitStep['waits_for'],
  details: string,
  wait_ms = LOOK_MAX_MS,
): WaitStep {
  const agent_type = row.agent_type ?? row.want_agent_type;
  return {
    kind: 'waits',
    waits_for,
    state: row.state,
    agent_type,
    details,
    wait_ms: Math.max(1, Math.min(wait_ms, LOOK_MAX_MS)),
  };
}
