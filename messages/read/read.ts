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

/** The open input requests of these messages, by message id. */
export async function openRequests(
  tx: Tx,
  tenantId: string,
  messageIds: string[],
): Promise<Map<string, InputRequestRow>> {
  if (messageIds.length === 0) return new Map();
  const rows = await tx.query<InputRequestRow>(
    `SELECT * FROM input_requests WHERE tenant_id = $1 AND message_id = ANY($2) AND state = 'pending'`,
    [tenantId, messageIds],
  );
  return new Map(rows.map((row) => [row.message_id, readableRequest(row)]));
}

/** Reads one message; null when the tenant has none of that id. */
export async function readMessage(tx: Tx, tenantId: string, messageId: string): Promise<MessageWithRequest | null> {
  const [row] = await tx.query<MessageRow>('SELECT * FROM messages WHERE tenant_id = $1 AND message_id = $2', [
    tenantId,
    messageId,
  ]);
  if (!row) return null;
  const requests = row.state === 'input-required' ? await openRequests(tx, tenantId, [messageId]) : new Map();
  return { row: readable(row), request: requests.get(messageId) ?? null };
}

/** Locks a message until the transaction ends; null when it has ended or does not exist. */
export async function lockRunning(tx: Tx, ref: MessageRef): Promise<RunningRow | null> {
  const [row] = await tx.query<RunningRow & Record<string, unknown>>(
    'SELECT * FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR UPDATE',
    [ref.tenant_id, ref.message_id],
  );
  return row ?? null;
}

/** As `readMessage`, in its own transaction: one round trip, unless the message waits for input. */
export async function findMessage(db: Db, tenantId: string, messageId: string): Promise<MessageWithRequest | null> {
  const [row] = await db.call<MessageRow & Record<string, unknown>>(
    'find_message',
    'SELECT * FROM find_message($1, $2)',
    [tenantId, messageId],
  );
  if (row?.state === 'input-required') return db.tenant(tenantId, (tx) => readMessage(tx, tenantId, messageId));
  return row ? { row: readable(row), request: null } : null;
}

/** Planned with the values, so that the plan has no trace of absent filters. The subquery uses an index on the instance's dispatches. */
const FILTER = `tenant_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR state = $3)
  AND ($4::text IS NULL OR coalesce(agent_type, want_agent_type) = $4)
  AND ($5::text IS NULL OR instance_id = $5
    AND message_id = ANY (ARRAY(SELECT d.message_id FROM dispatches d WHERE d.instance_id = $5 AND d.tenant_id = $1)))
  AND ($6::text IS NULL OR error_code = $6)
  AND ($7::timestamptz IS NULL OR created_at >= $7)
  AND ($8::timestamptz IS NULL OR created_at < $8) AND ${ownMessages('m', '$9')}`;

/** As `findMessage`; null also for a message that the reader may not see. */
export async function findOwnMessage(db: Db, reader: Reader, messageId: string): Promise<MessageWithRequest | null> {
  const found = await findMessage(db, reader.tenant_id, messageId);
  return found && isOwnMessage(reader, found.row) ? found : null;
}

async function asRecords(tx: Tx, tenantId: string, rows: MessageRow[]): Promise<MessageRecord[]> {
  const waiting = rows.filter((row) => row.state === 'input-required').map((row) => row.message_id);
  const requests = await openRequests(tx, tenantId, waiting);
  return rows.map((row) => recordOf(readable(row), requests.get(row.message_id) ?? null));
}

/** One message. @throws PlatformError NOT_FOUND */
export async function getMessage(db: Db, reader: Reader, messageId: string): Promise<MessageRecord> {
  const found = await findOwnMessage(db, reader, messageId);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  return recordOf(found.row, found.request);
}

/** A page of messages, newest first; `count` is the total. */
export async function listMessages(
  db: Db,
  reader: Reader,
  query: MessagesGetRequest,
): Promise<{ count: number; messages: MessageRecord[] }> {
  const { session_id, state, agent_type, instance_id, error_code, since, until } = query;
  const filters = [session_id, state, agent_type, instance_id, error_code, since, until];
  const values = [reader.tenant_id, ...filters.map((value) => value ?? null), actsAs(reader)];
  return db.tenant(reader.tenant_id, async (tx) => {
    const [total] = await tx.query<{ count: number }>(
      `SELECT count(*) AS count FROM messages m WHERE ${FILTER}`,
      values,
    );
    const rows = await tx.query<MessageRow>(
      `SELECT * FROM messages m WHERE ${FILTER} ORDER BY message_id DESC LIMIT $10 OFFSET $11`,
      [...values, query.page_size, (query.page - 1) * query.page_size],
    );
    return { count: total?.count ?? 0, messages: await asRecords(tx, reader.tenant_id, rows) };
  });
}

/** A page of the messages that wait for input, the oldest request first. */
export async function pendingMessages(
  db: Db,
  tenantId: string,
  query: { session_id?: string; limit: number; offset: number },
): Promise<{ total: number; messages: MessageRecord[] }> {
  const from = `FROM messages m JOIN input_requests r USING (tenant_id, message_id)
    WHERE m.tenant_id = $1 AND m.state = 'input-required' AND r.state = 'pending' AND ($2::text IS NULL OR m.session_id = $2)`;
  const values = [tenantId, query.session_id ?? null];
  return db.tenant(tenantId, async (tx) => {
    const [total] = await tx.query<{ count: number }>(`SELECT count(*) AS count ${from}`, values);
    const rows = await tx.query<MessageRow>(
      `SELECT m.* ${from} ORDER BY r.requested_at, r.request_id LIMIT $3 OFFSET $4`,
      [...values, query.limit, query.offset],
    );
    return { total: total?.count ?? 0, messages: await asRecords(tx, tenantId, rows) };
  });
}
