import { isTerminal } from '../contracts/messages.js';
import { isOwnMessage, type Reader } from '../contracts/permissions.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { MessageCore, MessageRef, SessionRef } from './core.js';
import { closeDispatch, finishCanceled, openDispatchOf, withdrawRequest } from './finish.js';
import { readMessage } from './read.js';
import type { MessageRow } from './rows.js';

/** Cancels a message whose row is locked and not terminal: dispatch, open request, row and events. */
async function cancelLocked(tx: Tx, row: MessageRow, reason: string): Promise<void> {
  const dispatch = await openDispatchOf(tx, row);
  if (dispatch) await closeDispatch(tx, row, dispatch, 'canceled', 'CANCELED');
  await withdrawRequest(tx, row);
  await finishCanceled(tx, row, reason);
}

/** Tells watchers and the workflow of a message that was canceled. */
export function announceCanceled(core: MessageCore, ref: MessageRef & SessionRef): void {
  core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  core.waker.message(ref);
}

/**
 * Cancels a message (specification section 3): the row ends in one transaction, the workflow then brings CANCELED to the agent.
 * @param reader who wants it, which must be one that sees the message; null for the platform itself
 * @throws PlatformError NOT_FOUND, ALREADY_TERMINAL
 */
export async function cancelMessage(
  core: MessageCore,
  ref: MessageRef,
  reason: string,
  reader: Reader | null = null,
): Promise<void> {
  const session_id = await core.db.tenant(ref.tenant_id, async (tx) => {
    const found = await readMessage(tx, ref.tenant_id, ref.message_id, true);
    if (!found || (reader && !isOwnMessage(reader, found.row)))
      throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    if (isTerminal(found.row.state))
      throw new PlatformError('ALREADY_TERMINAL', `The message is already ${found.row.state}.`);
    await cancelLocked(tx, found.row, reason);
    return found.row.session_id;
  });
  announceCanceled(core, { tenant_id: ref.tenant_id, message_id: ref.message_id, session_id });
}

/** Cancels all that a session has in flight, in the caller's transaction. @returns the messages that were canceled */
export async function cancelSessionMessages(
  tx: Tx,
  tenantId: string,
  sessionId: string,
  reason: string,
): Promise<(MessageRef & SessionRef)[]> {
  const rows = await tx.query<MessageRow>(
    `SELECT * FROM messages WHERE tenant_id = $1 AND session_id = $2 AND state IN ('submitted', 'working', 'input-required')
      ORDER BY message_id FOR UPDATE`,
    [tenantId, sessionId],
  );
  for (const row of rows) await cancelLocked(tx, row, reason);
  return rows.map((row) => ({ tenant_id: tenantId, message_id: row.message_id, session_id: sessionId }));
}
