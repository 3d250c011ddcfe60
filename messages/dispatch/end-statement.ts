import type { MessageInput } from '../../contracts/workflows.js';
import { type Statement, timeOf } from '../../db/connections/statement.js';
import type { TakenRow } from './queues.js';

/** A `dispatch_end_result`. */
export interface EndRow {
  ended_at: Date | null;
  session_id: string;
  instance_id: string;
  agent_type: string;
  /** Messages that are to be taken a step further. */
  woken: MessageInput[];
  awaits: string | null;
  taken: TakenRow | null;
  take_again: boolean;
  /** Its workflow is to hear of the end. */
  watched: boolean;
}

/** The complete transaction (db/functions/dispatches/end_dispatches.sql). */
export const END: Statement<EndRow> = {
  name: 'end_dispatches',
  text: 'SELECT ended_at, session_id, instance_id, agent_type, woken, awaits, taken, take_again, watched FROM unnest(end_dispatches($1, $2))',
  row: ([endedAt, session, instance, type, woken, awaits, taken, takeAgain, watched]) => ({
    ended_at: endedAt ? timeOf(endedAt) : null,
    session_id: session ?? '',
    instance_id: instance ?? '',
    agent_type: type ?? '',
    woken: woken ? JSON.parse(woken) : [],
    awaits: awaits ?? null,
    taken: taken ? JSON.parse(taken) : null,
    take_again: takeAgain === 't',
    watched: watched === 't',
  }),
  awaits: (row) => row.awaits,
};
