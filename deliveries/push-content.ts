import type { A2aVersion, StreamEvent, Task } from '../contracts/a2a/a2a.js';
import { eventTo1 } from '../contracts/a2a/a2a-1-results.js';
import { isTerminal, type MessageState } from '../contracts/api/messages.js';
import type { Db, Tx } from '../db/pool.js';
import { readable, readableRequest } from '../messages/read/readable.js';
import type { InputRequestRow, MessageRow } from '../messages/read/rows.js';
import { taskOf } from '../messages/read/task.js';
import { traceparentOf, uuidOf } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import type { Notification } from './push-attempt.js';
import { unsealPushSecrets } from './push-config-store.js';
import type { OfDelivery } from './push-deliveries.js';

interface DeliveryRow extends MessageRow, Record<string, unknown> {
  d_state: MessageState;
  d_changed_at: Date;
  /** The message has not changed since. */
  d_current: boolean;
  c_url: string;
  c_schemes: string[];
  c_secrets: Buffer | null;
  c_version: A2aVersion;
}

const DELIVERY = `
  SELECT m.*, d.state AS d_state, d.changed_at AS d_changed_at, m.state = d.state AND m.updated_at = d.changed_at AS d_current,
         c.url AS c_url, c.schemes AS c_schemes, c.secrets AS c_secrets, c.protocol_version AS c_version
    FROM push_deliveries d JOIN push_configs c USING (tenant_id, message_id, config_id) JOIN messages m USING (tenant_id, message_id)
   WHERE d.tenant_id = $1 AND d.message_id = $2 AND d.config_id = $3 AND d.sequence = $4 AND d.ended_at IS NULL`;

/** The input request that this change of state created, even if it has been answered since. */
const INPUT_REQUEST = `
  SELECT r.* FROM input_requests r JOIN push_deliveries d USING (tenant_id, message_id)
   WHERE d.tenant_id = $1 AND d.message_id = $2 AND d.config_id = $3 AND d.sequence = $4 AND r.requested_at = d.changed_at`;

async function inputRequestOf(tx: Tx, delivery: unknown[]): Promise<InputRequestRow | null> {
  const [request] = await tx.query<InputRequestRow>(INPUT_REQUEST, delivery);
  return request ? readableRequest(request) : null;
}

/** A message as it was at an earlier change of state, as far as the record knows; everything newer is left out. */
function asItWas(row: DeliveryRow, request: InputRequestRow | null): MessageRow {
  const question = request && `${uuidOf(row.message_id)}:${request.request_id}`;
  return {
    ...row,
    state: row.d_state,
    updated_at: row.d_changed_at,
    status_message: row.turns.find(({ messageId }) => messageId === question) ?? null,
    artifacts: [],
    usage: null,
    error_code: null,
    error_message: null,
  };
}

function taskAt(row: DeliveryRow, request: InputRequestRow | null): Task {
  if (row.d_current || isTerminal(row.d_state)) return taskOf(row, request);
  const { artifacts: _artifacts, history: _history, ...task } = taskOf(asItWas(row, request), request);
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
 * Reads the notification of a delivery: the task in the state that the delivery is for, not in its current one.
 * @returns null when the delivery has ended or its config was removed
 */
export async function readPushContent(
  db: Db,
  secrets: Pick<Secrets, 'decrypt'>,
  of: OfDelivery,
): Promise<Notification | null> {
  return db.tenant(of.tenant_id, async (tx) => {
    const values = [of.tenant_id, of.message_id, of.config_id, of.sequence];
    const [found] = await tx.query<DeliveryRow>(DELIVERY, values);
    if (!found) return null;
    const row = readable(found);
    const request = row.d_state === 'input-required' ? await inputRequestOf(tx, values) : null;
    const body = bodyOf(taskAt(row, request), row.c_version);
    const traceparent = traceparentOf(row.trace_id, uuidOf(row.message_id));
    return { url: row.c_url, schemes: row.c_schemes, ...unsealPushSecrets(secrets, row.c_secrets), body, traceparent };
  });
}
