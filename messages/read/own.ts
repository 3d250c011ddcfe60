import { actsAs, isOwnMessage, isSentBy, type MessageOwners, type Reader } from '../../contracts/permissions.js';
import { isForeignSession, ownersOf } from '../../db/own.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';

/**
 * Checks that a message may go into the context that it names. Costs a round trip for agents only.
 * @throws PlatformError SESSION_NOT_FOUND
 */
export async function requireOwnContext(db: Db, sender: Reader, contextId: string | undefined): Promise<void> {
  if (contextId === undefined || actsAs(sender) === null) return;
  if (await db.tenant(sender.tenant_id, (tx) => isForeignSession(tx, sender, contextId)))
    throw new PlatformError('SESSION_NOT_FOUND', 'There is no session of that contextId.');
}

/**
 * Checks that a repeated message is the sender's own: agents of several types may share a credential, and with it their messageIds.
 * @throws PlatformError IDEMPOTENCY_MISMATCH
 */
export async function requireOwnRepeat(db: Db, sender: Reader, messageId: string): Promise<void> {
  if (actsAs(sender) === null) return;
  const owners = await db.tenant(sender.tenant_id, (tx) => ownersOf(tx, sender.tenant_id, messageId));
  if (!owners || !isSentBy(sender, owners))
    throw new PlatformError('IDEMPOTENCY_MISMATCH', 'This messageId was already sent by another.');
}

/**
 * Checks that the push notifications of a task are the caller's to see and to set: they belong to who sent it.
 * @throws PlatformError PUSH_CONFIG_NOT_FOUND where the caller sees no such task; forbidden where it only serves it
 */
export function requireSender(caller: Reader, owners: MessageOwners | null): void {
  if (!owners || !isOwnMessage(caller, owners))
    throw new PlatformError('PUSH_CONFIG_NOT_FOUND', 'Task not found: there is none of that id.');
  if (!isSentBy(caller, owners))
    throw new PlatformError('forbidden', 'The push notifications of a task belong to who sent it.');
}
