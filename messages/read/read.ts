import type { MessageRecord, MessagesGetRequest } from '../../contracts/api/messages.js';
import { actsAs, isOwnMessage, type Reader } from '../../contracts/permissions.js';
import { ownMessages } from '../../db/ownership.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageRef } from '../core.js';
import { readable, readableRequest } from './readable.js';
import type { InputRequestRow, MessageRow, RunningRow } from './rows.js';
import { recordOf } from './task.js';

/** A message with its open input request, if it has one. */
export interface MessageWithRequest {
  row: MessageRow;
  request: InputRequestRow | null;
}

/** The open input requests of those messages that wait for input, by message id. */
export async function openRequests(
  tx: Tx,
  tenantId: string,
  messages: Pick<MessageRow, 'message_id' | 'state'>[],
): Promise<Map<string, InputRequestRow>> {
  const waiting = messages.filter(({ state }) => state === 'input-required').map(({ message_id }) => message_id);
  if (waiting.length === 0) return new Map();
  const rows = await tx.query<InputRequestRow>(
    `SELECT * FROM input_requests WHERE tenant_id = $1 AND message_id = ANY($2) AND state = 'pending'`,
    [tenantId, waiting],
  );
  return new Map(rows.map((row) => [row.message_id, readableRequest(row)]));
}

/** Reads one message; null when the tenant has none of that id. */
export async function readMessage(tx: Tx, tenantId: string, messageId: string): Promise<MessageWithRequest | null> {
  const one = 'SELECT * FROM messages WHERE tenant_id = $1 AND message_id = $2';
  const [row] = await tx.query<MessageRow>(one, [tenantId, messageId]);
  if (!row) return null;
  const requests = await openRequests(tx, tenantId, [row]);
  return { row: readable(row), request: requests.get(messageId) ?? null };
}

/** Locks a message until the transaction ends; null when it has ended or does not exist. */
export async function lockRunning(tx: Tx, ref: MessageRef): Promise<RunningRow | null> {
  const [row] = await tx.query<RunningRow>(
    'SELECT * FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR UPDATE',
    [ref.tenant_id, ref.message_id],
  );
  return row ?? null;
}

/** As `readMessage`, in its own transaction: one round trip, unless the message waits for input. */
export async function findMessage(db: Db, tenantId: string, messageId: string): Promise<MessageWithRequest | null> {
  const values = [tenantId, messageId];
  const [row] = await db.call<MessageRow>('find_message', 'SELECT * FROM find_message($1, $2)', values);
  if (row?.state === 'input-required') return db.tenant(tenantId, (tx) => readMessage(tx, tenantId, messageId));
  return row ? { row: readable(row), request: null } : null;
}

/** Whether a message has changed since it was read, by a read of its state alone. */
export async function hasMessageChanged(db: Db, { row }: Pick<MessageWithRequest, 'row'>): Promise<boolean> {
  const [now] = await db.call<Pick<MessageRow, 'state' | 'updated_at'>>(
    'find_message_state',
    'SELECT state, updated_at FROM find_message_state($1, $2)',
    [row.tenant_id, row.message_id],
  );
  return now?.state !== row.state || now.updated_at.getTime() !== row.updated_at.getTime();
}

/** As `findMessage`; null also for a message that the reader may not see. */
export async function findOwnMessage(db: Db, reader: Reader, messageId: string): Promise<MessageWithRequest | null> {
  const found = await findMessage(db, reader.tenant_id, messageId);
  return found && isOwnMessage(reader, found.row) ? found : null;
}

/** How many rows `from` has, which is a FROM clause with its conditions. */
export async function countOf(tx: Tx, from: string, values: unknown[]): Promise<number> {
  const [total] = await tx.query<{ count: number }>(`SELECT count(*) AS count ${from}`, values);
  return total?.count ?? 0;
}

/** A page of the messages `m` in `from`, and their number. @param values of `from`; the first is the tenant */
async function pageOf(
  db: Db,
  from: string,
  values: [tenantId: string, ...unknown[]],
  page: { order: string; limit: number; offset: number },
): Promise<{ count: number; messages: MessageRecord[] }> {
  const [tenantId] = values;
  const text = `SELECT m.* ${from} ORDER BY ${page.order} LIMIT $${values.length + 1} OFFSET $${values.length + 2}`;
  return db.tenant(tenantId, async (tx) => {
    const count = await countOf(tx, from, values);
    const rows = await tx.query<MessageRow>(text, [...values, page.limit, page.offset]);
    const requests = await openRequests(tx, tenantId, rows);
    return { count, messages: rows.map((row) => recordOf(readable(row), requests.get(row.message_id) ?? null)) };
  });
}

/** One message. @throws PlatformError NOT_FOUND */
export async function getMessage(db: Db, reader: Reader, messageId: string): Promise<MessageRecord> {
  const found = await findOwnMessage(db, reader, messageId);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  return recordOf(found.row, found.request);
}

/** Planned with the values, so that the plan has no trace of absent filters. The subquery uses an index on the instance's dispatches. */
const LISTED = `FROM messages m WHERE tenant_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR state = $3)
  AND ($4::text IS NULL OR coalesce(agent_type, want_agent_type) = $4)
  AND ($5::text IS NULL OR instance_id = $5
    AND message_id = ANY (ARRAY(SELECT d.message_id FROM dispatches d WHERE d.instance_id = $5 AND d.tenant_id = $1)))
  AND ($6::text IS NULL OR error_code = $6)
  AND ($7::timestamptz IS NULL OR created_at >= $7)
  AND ($8::timestamptz IS NULL OR created_at < $8) AND ${ownMessages('m', '$9')}`;

/** A page of messages, newest first; `count` is the total. */
export async function listMessages(
  db: Db,
  reader: Reader,
  query: MessagesGetRequest,
): Promise<{ count: number; messages: MessageRecord[] }> {
  const { session_id, state, agent_type, instance_id, error_code, since, until, page, page_size: limit } = query;
  const filters = [session_id, state, agent_type, instance_id, error_code, since, until];
  const values: [string, ...unknown[]] = [reader.tenant_id, ...filters, actsAs(reader)];
  return pageOf(db, LISTED, values, { order: 'message_id DESC', limit, offset: (page - 1) * limit });
}

/** A page of the messages that wait for input, the oldest request first. */
export async function pendingMessages(
  db: Db,
  tenantId: string,
  query: { session_id?: string; limit: number; offset: number },
): Promise<{ total: number; messages: MessageRecord[] }> {
  const from = `FROM messages m JOIN input_requests r USING (tenant_id, message_id)
    WHERE m.tenant_id = $1 AND m.state = 'input-required' AND r.state = 'pending' AND ($2::text IS NULL OR m.session_id = $2)`;
  const page = { ...query, order: 'r.requested_at, r.request_id' };
  const { count: total, messages } = await pageOf(db, from, [tenantId, query.session_id], page);
  return { total, messages };
}
