import type { A2aVersion, StreamEvent, Task } from '../../contracts/a2a/a2a.js';
import { eventTo1 } from '../../contracts/a2a/a2a-1-results.js';
import type { MessageState } from '../../contracts/api/messages.js';
import { asksPerson, isTerminal } from '../../contracts/message-states.js';
import type { Tx } from '../../db/pool.js';
import { readable, readableRequest } from '../../messages/read/readable.js';
import type { InputRequestRow, MessageRow } from '../../messages/read/rows.js';
import { taskOf } from '../../messages/read/task.js';
import { uuidOf } from '../../runtime/ids.js';
import { stateOfType } from './push-changes.js';

interface ChangeRow extends MessageRow, Record<string, unknown> {
  d_event_type: string;
  d_changed_at: Date;
  /** The message has not changed since. */
  d_unchanged: boolean;
}

const CHANGE = `
  SELECT m.*, d.event_type AS d_event_type, d.changed_at AS d_changed_at, m.updated_at = d.changed_at AS d_unchanged
    FROM deliveries d JOIN messages m USING (tenant_id, message_id)
   WHERE d.tenant_id = $1 AND d.delivery_id = $2`;

/** The input request that this change of state created, even if it has been answered since. */
const INPUT_REQUEST = `
  SELECT r.* FROM input_requests r JOIN deliveries d USING (tenant_id, message_id)
   WHERE d.tenant_id = $1 AND d.delivery_id = $2 AND r.requested_at = d.changed_at`;

async function inputRequestOf(tx: Tx, delivery: string[]): Promise<InputRequestRow | null> {
  const [request] = await tx.query<InputRequestRow>(INPUT_REQUEST, delivery);
  return request ? readableRequest(request) : null;
}

/** A message as it was at an earlier change of state, as far as the record knows; everything newer is left out. */
function asItWas(row: ChangeRow, state: MessageState, request: InputRequestRow | null): MessageRow {
  const question = request && `${uuidOf(row.message_id)}:${request.request_id}`;
  return {
    ...row,
    state,
    updated_at: row.d_changed_at,
    status_message: row.turns.find(({ messageId }) => messageId === question) ?? null,
    artifacts: [],
    usage: null,
    error_code: null,
    error_message: null,
  };
}

function taskAt(row: ChangeRow, state: MessageState, request: InputRequestRow | null): Task {
  if ((row.state === state && row.d_unchanged) || isTerminal(state)) return taskOf(row, request);
  const { artifacts: _artifacts, history: _history, ...task } = taskOf(asItWas(row, state, request), request);
  return task;
}

/** The body of a notification: the task in 0.3; in 1.0 a `StreamResponse`, which contains the task only once it is terminal. */
function bodyOf(task: Task, version: A2aVersion): unknown {
  if (version === '0.3') return task;
  const { id: taskId, contextId, status } = task;
  const update: StreamEvent = { kind: 'status-update', taskId, contextId, status, final: false };
  return eventTo1(isTerminal(status.state as MessageState) ? task : update);
}

/**
 * Makes the bytes of a push notification: the task in the state that it is about, not in its current one.
 * @returns null when the message is gone
 */
export async function pushBody(
  tx: Tx,
  { tenant_id, delivery_id }: { tenant_id: string; delivery_id: string },
  version: A2aVersion,
): Promise<Buffer | null> {
  const values = [tenant_id, delivery_id];
  const [found] = await tx.query<ChangeRow>(CHANGE, values);
  if (!found) return null;
  const row = readable(found);
  const state = stateOfType(row.d_event_type);
  const request = asksPerson(state) ? await inputRequestOf(tx, values) : null;
  return Buffer.from(JSON.stringify(bodyOf(taskAt(row, state, request), version)));
}
