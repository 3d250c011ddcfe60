import type { MessageRecord, MessagesGetRequest } from '../../contracts/messages.js';
import { actsAs, isOwnMessage, type Reader } from '../../contracts/permissions.js';
import { ownMessages } from '../../db/own.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { readable, readableRequest } from './readable.js';
import type { InputRequestRow, MessageRow, RunningRow } from './rows.js';
import { recordOf } from './task.js';

/** A message with the request that is open on it, if one is. */
export interface MessageWithRequest {
  row: MessageRow;
  request: InputRequestRow | null;
}

/** The requests that are open on these messages, by message. */
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
  return row ? withRequest(tx, readable(row)) : null;
}

/** Locks a message that is not over until the transaction ends; null when it is over, or there is none. */
export async function lockRunning(tx: Tx, ref: { tenant_id: string; message_id: string }): Promise<RunningRow | null> {
  const [row] = await tx.query<RunningRow & Record<string, unknown>>(
    'SELECT * FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR UPDATE',
    [ref.tenant_id, ref.message_id],
  );
  return row ?? null;
}

/** As `readMessage` in a transaction of its own, which mostly is one round trip. */
export async function findMessage(db: Db, tenantId: string, messageId: string): Promise<MessageWithRequest | null> {
  const [row] = await db.call<MessageRow & Record<string, unknown>>('find_message', FIND, [tenantId, messageId]);
  if (row?.state === 'input-required') return db.tenant(tenantId, (tx) => readMessage(tx, tenantId, messageId));
  return row ? { row: readable(row), request: null } : null;
}

const FIND = 'SELECT * FROM find_message($1, $2)';

/** Planned with the values: what is not asked for leaves no trace in the plan. An index leads to the dispatches of an instance. */
const FILTER = `tenant_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR state = $3)
  AND ($4::text IS NULL OR coalesce(agent_type, want_agent_type) = $4)
  AND ($5::text IS NULL OR instance_id = $5
    AND message_id = ANY (ARRAY(SELECT d.message_id FROM dispatches d WHERE d.instance_id = $5 AND d.tenant_id = $1)))
  AND ($6::text IS NULL OR error_code = $6)
  AND ($7::timestamptz IS NULL OR created_at >= $7)
  AND ($8::timestamptz IS NULL OR created_at < $8) AND ${ownMessages('m', '$9')}`;

/** As `findMessage`; null also for a message that is not the reader's to see. */
export async function findOwnMessage(db: Db, reader: Reader, messageId: string): Promise<MessageWithRequest | null> {
  const found = await findMessage(db, reader.tenant_id, messageId);
  return found && isOwnMessage(reader, found.row) ? found : null;
}

/** A message's row with the request that is open on it, if one is. */
async function withRequest(tx: Tx, row: MessageRow): Promise<MessageWithRequest> {
  const { tenant_id, message_id } = row;
  const requests = row.state === 'input-required' ? await openRequests(tx, tenant_id, [message_id]) : new Map();
  return { row, request: requests.get(message_id) ?? null };
}

async function asRecords(tx: Tx, tenantId: string, rows: MessageRow[]): Promise<MessageRecord[]> {
  const waiting = rows.filter((row) => row.state === 'input-required').map((row) => row.message_id);
  const requests = await openRequests(tx, tenantId, waiting);
  return rows.map((row) => recordOf(readable(row), requests.get(row.message_id) ?? null));
}

/** The reads behind `/messages/get`, `get_by_id` and `pending`. */
export function createMessageReads(db: Db) {
  return {
    /** One message. @throws PlatformError NOT_FOUND */
    async get(reader: Reader, messageId: string): Promise<MessageRecord> {
      const found = await findOwnMessage(db, reader, messageId);
      if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
      return recordOf(found.row, found.request);
    },

    /** A page of messages, newest first; `count` is the total. */
    async list(reader: Reader, query: MessagesGetRequest): Promise<{ count: number; messages: MessageRecord[] }> {
      const tenantId = reader.tenant_id;
      const { session_id, state, agent_type, instance_id, error_code, since, until } = query;
      const filters = [session_id, state, agent_type, instance_id, error_code, since, until];
      const values = [tenantId, ...filters.map((value) => value ?? null), actsAs(reader)];
      return db.tenant(tenantId, async (tx) => {
        const [total] = await tx.query<{ count: number }>(
          `SELECT count(*) AS count FROM messages m WHERE ${FILTER}`,
          values,
        );
        const rows = await tx.query<MessageRow>(
          `SELECT * FROM messages m WHERE ${FILTER} ORDER BY message_id DESC LIMIT $10 OFFSET $11`,
          [...values, query.page_size, (query.page - 1) * query.page_size],
        );
        return { count: total?.count ?? 0, messages: await asRecords(tx, tenantId, rows) };
      });
    },

    /** Messages that wait for a human, oldest request first. */
    async pending(
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
    },
  };
}
