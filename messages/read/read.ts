import type { MessageRecord } from '../../contracts/api/messages.js';
import { asksPerson, isTerminal } from '../../contracts/message-states.js';
import { isOwnMessage, type Reader } from '../../contracts/permissions.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageRef } from '../core.js';
import { readable, readableRequest } from './readable.js';
import type { InputRequestRow, MessageRow, RunningRow } from './rows.js';
import { recordOf } from './task.js';
import { readWait } from './waits.js';

/** A message with its open input request, if it has one. */
export interface MessageWithRequest {
  row: MessageRow;
  request: InputRequestRow | null;
}

/** The open input request of a message; null of one that does not wait for input. */
export async function pendingRequest(
  tx: Tx,
  tenantId: string,
  { message_id, state }: Pick<MessageRow, 'message_id' | 'state'>,
): Promise<InputRequestRow | null> {
  if (!asksPerson(state)) return null;
  const [row] = await tx.query<InputRequestRow>(
    `SELECT * FROM request_details WHERE tenant_id = $1 AND message_id = $2 AND state = 'pending'`,
    [tenantId, message_id],
  );
  return row ? readableRequest(row) : null;
}

/** Reads one message; null when the tenant has none of that id. */
export async function readMessage(tx: Tx, tenantId: string, messageId: string): Promise<MessageWithRequest | null> {
  const one = 'SELECT * FROM messages WHERE tenant_id = $1 AND message_id = $2';
  const [row] = await tx.query<MessageRow>(one, [tenantId, messageId]);
  if (!row) return null;
  const request = await pendingRequest(tx, tenantId, row);
  return { row: readable(row), request };
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
  const [row] = await db.call<MessageRow>(tenantId, 'find_message', 'SELECT * FROM find_message($1, $2)', values);
  if (row && asksPerson(row.state)) return db.tenant(tenantId, (tx) => readMessage(tx, tenantId, messageId));
  return row ? { row: readable(row), request: null } : null;
}

/** As `findMessage`; null also for a message that the reader may not see. */
export async function findOwnMessage(db: Db, reader: Reader, messageId: string): Promise<MessageWithRequest | null> {
  const found = await findMessage(db, reader.tenant_id, messageId);
  return found && isOwnMessage(reader, found.row) ? found : null;
}

/**
 * One message, with what it waits for.
 * @param inFlightMax messages of the tenant that agents may have at once; null: any number
 * @throws PlatformError NOT_FOUND
 */
export async function getMessage(
  db: Db,
  reader: Reader,
  messageId: string,
  inFlightMax: number | null = null,
): Promise<MessageRecord> {
  const found = await findOwnMessage(db, reader, messageId);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  const { row, request } = found;
  const record = recordOf(row, request);
  if (request) return { ...record, waits_for: { kind: 'person', since: request.requested_at.toISOString() } };
  const waits_for = isTerminal(row.state)
    ? undefined
    : await db.tenant(row.tenant_id, (tx) => readWait(tx, row, inFlightMax));
  return waits_for ? { ...record, waits_for } : record;
}
