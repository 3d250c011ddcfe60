import type { Usage } from '../../contracts/messages.js';
import type { Artifact } from '../../contracts/parts.js';
import type { Db } from '../../db/pool.js';
import { type Statement, timeOf } from '../../db/statement.js';
import { newId } from '../../runtime/ids.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageRef } from '../core.js';
import type { MessageRow } from '../read/rows.js';
import type { DispatchRef } from './dispatch-ref.js';

/** How a dispatch ends its message. `output` is absent where the agent brought none. */
export interface Ending {
  state: 'completed' | 'failed';
  error: { code: string; message: string } | null;
  output?: {
    artifacts: Artifact[];
    usage: Usage | null;
    assistant_output: string;
    status_message: MessageRow['status_message'];
  };
}

/** What an ended message's row says differently from before. */
export type MessageEnd = Pick<MessageRow, 'state' | 'error_code' | 'error_message' | 'updated_at' | 'completed_at'> &
  Partial<NonNullable<Ending['output']>>;

/** Whose end it was. */
interface Served {
  session_id: string;
  instance_id: string;
  agent_type: string;
}

interface EndRow extends Served {
  ended_at: Date | null;
  called: (MessageRef & SessionRef)[] | null;
}

const END: Statement<EndRow> = {
  name: 'end_dispatches',
  text: 'SELECT ended_at, called, session_id, instance_id, agent_type FROM end_dispatches($1, $2)',
  row: ([endedAt, called, session, instance, type]) => ({
    ended_at: endedAt ? timeOf(endedAt) : null,
    called: called ? JSON.parse(called) : null,
    session_id: session ?? '',
    instance_id: instance ?? '',
    agent_type: type ?? '',
  }),
};

/** What `end_dispatch` raises to undo itself: the dispatch is not open, or of another epoch. */
const NOT_OPEN = 'FL001';

async function callEnd(db: Db, call: object): Promise<EndRow | undefined> {
  try {
    return await db.batch(END, call);
  } catch (error) {
    if ((error as { code?: unknown }).code === NOT_OPEN) return undefined;
    throw error;
  }
}

/**
 * T2: takes the end of a dispatch and ends its message with it, in one round trip.
 * @param epoch of the connection that brought it; null where that does not matter
 * @returns null when the dispatch was not open, not the message's current one, or of another epoch; nothing was written then
 */
export async function endInOne(
  db: Db,
  ref: DispatchRef,
  epoch: number | null,
  ending: Ending,
): Promise<{ end: MessageEnd; called: (MessageRef & SessionRef)[]; served: Served } | null> {
  const { state, error, output } = ending;
  const row = await callEnd(db, {
    tenant_id: ref.tenant_id,
    message_id: ref.message_id,
    dispatch_id: ref.dispatch_id,
    epoch,
    outcome: state,
    error: error?.code,
    error_said: error?.message,
    produced: output?.artifacts,
    used: output?.usage,
    output: output?.assistant_output,
    status: output?.status_message,
    event_ids: [newId('evt'), newId('evt')],
  });
  if (!row?.ended_at) return null;
  const { ended_at: at, called, session_id, instance_id, agent_type } = row;
  const facts = { state, error_code: error?.code ?? null, error_message: error?.message ?? null };
  return {
    end: { ...facts, ...output, updated_at: at, completed_at: at },
    called: called ?? [],
    served: { session_id, instance_id, agent_type },
  };
}
