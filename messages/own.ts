import { actsAs, isOwnMessage, isSentBy, type MessageOwners, type Reader } from '../contracts/permissions.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { RpcError } from './rpc-error.js';

/** The agent type whose records a query may show, as its parameter: null for all of the tenant. */
export function ownType(reader: Reader): string | null {
  return actsAs(reader);
}

/** `isOwnMessage` (contracts/permissions.ts) as SQL: true where the parameter is null. */
export function ownMessages(alias: string, parameter: string): string {
  return `(${parameter}::text IS NULL OR ${alias}.agent_type = ${parameter} OR ${alias}.sender_agent_type = ${parameter})`;
}

/** The same for sessions: the type is one of the session's agents, opened it, or has sent or serves a message of it. */
export function ownSessions(alias: string, parameter: string): string {
  const of = (table: string) => `${table}.tenant_id = ${alias}.tenant_id AND ${table}.session_id = ${alias}.session_id`;
  return `(${parameter}::text IS NULL OR ${alias}.agent_type = ${parameter} OR ${alias}.sender_agent_type = ${parameter}
    OR EXISTS (SELECT 1 FROM session_agents j WHERE ${of('j')} AND j.agent_type = ${parameter})
    OR EXISTS (SELECT 1 FROM messages o WHERE ${of('o')} AND ${parameter} IN (o.agent_type, o.sender_agent_type)))`;
}

const FOREIGN = `SELECT 1 FROM sessions s WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${ownSessions('s', '$3')} IS NOT TRUE`;

/** Whether there is a session of this id that is not the reader's to see. */
export async function isForeignSession(tx: Tx, reader: Reader, sessionId: string): Promise<boolean> {
  const own = ownType(reader);
  return own !== null && (await tx.query(FOREIGN, [reader.tenant_id, sessionId, own])).length > 0;
}

/**
 * Checks that a message may go into the context that it names. Costs a round trip for agents only.
 * @throws RpcError INVALID_PARAMS with NOT_FOUND
 */
export async function requireOwnContext(db: Db, sender: Reader, contextId: string | undefined): Promise<void> {
  if (contextId === undefined || ownType(sender) === null) return;
  if (await db.tenant(sender.tenant_id, (tx) => isForeignSession(tx, sender, contextId)))
    throw new RpcError('INVALID_PARAMS', 'There is no session of that contextId.', 'NOT_FOUND');
}

/** Whose a message is; null when the tenant has none of that id. */
export async function ownersOf(tx: Tx, tenantId: string, messageId: string): Promise<MessageOwners | null> {
  const [row] = await tx.query<MessageOwners & Record<string, unknown>>(
    'SELECT agent_type, sender_agent_type FROM messages WHERE tenant_id = $1 AND message_id = $2',
    [tenantId, messageId],
  );
  return row ?? null;
}

/**
 * Checks that a repeated message is the sender's own: agents of several types may share a credential, and with it their messageIds.
 * @throws RpcError INVALID_PARAMS with IDEMPOTENCY_MISMATCH
 */
export async function requireOwnRepeat(db: Db, sender: Reader, messageId: string): Promise<void> {
  if (ownType(sender) === null) return;
  const owners = await db.tenant(sender.tenant_id, (tx) => ownersOf(tx, sender.tenant_id, messageId));
  if (!owners || !isSentBy(sender, owners))
    throw new RpcError('INVALID_PARAMS', 'This messageId was already sent by another.', 'IDEMPOTENCY_MISMATCH');
}

/**
 * Checks that the push notifications of a task are the caller's to see and to set: they belong to who sent it.
 * @throws RpcError TASK_NOT_FOUND where the task is not there for the caller; PlatformError forbidden where it only serves it
 */
export function requireSender(caller: Reader, owners: MessageOwners | null): void {
  if (!owners || !isOwnMessage(caller, owners))
    throw new RpcError('TASK_NOT_FOUND', 'Task not found: there is none of that id.');
  if (!isSentBy(caller, owners))
    throw new PlatformError('forbidden', 'The push notifications of a task belong to who sent it.');
}
