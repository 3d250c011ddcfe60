import { isTerminal } from '../contracts/messages.js';
import { isOwnMessage, type Reader } from '../contracts/permissions.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { MessageCore, MessageRef } from './core.js';
import { logEnd } from './end-log.js';
import { closeDispatch, finishCanceled, openDispatchOf, withdrawRequest } from './finish.js';
import { readMessage } from './read.js';
import type { MessageRow } from './rows.js';

/** A message that was canceled, and what it was when it was. */
export type Canceled = Pick<
  MessageRow,
  'tenant_id' | 'message_id' | 'session_id' | 'agent_type' | 'instance_id' | 'current_dispatch_id'
>;

/** Cancels a message whose row is locked and not terminal: dispatch, open request, row and events. */
async function cancelLocked(tx: Tx, row: MessageRow, reason: string): Promise<Canceled> {
  const dispatch = await openDispatchOf(tx, row);
  if (dispatch) await closeDispatch(tx, row, dispatch, 'canceled', 'CANCELED');
  await withdrawRequest(tx, row);
  await finishCanceled(tx, row, reason);
  const { tenant_id, message_id, session_id, agent_type, instance_id, current_dispatch_id } = row;
  return { tenant_id, message_id, session_id, agent_type, instance_id, current_dispatch_id };
}

/** Tells watchers, the workflow and the log of a message that was canceled. */
export function announceCanceled(core: MessageCore, canceled: Canceled): void {
  const { tenant_id, message_id, session_id, current_dispatch_id } = canceled;
  core.bus.publish(tenant_id, message_id, { kind: 'changed' });
  core.waker.message({ tenant_id, message_id, session_id });
  logEnd(core.log, { ...canceled, dispatch_id: current_dispatch_id, state: 'canceled' });
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
  const canceled = await core.db.tenant(ref.tenant_id, async (tx) => {
    const found = await readMessage(tx, ref.tenant_id, ref.message_id, true);
    if (!found || (reader && !isOwnMessage(reader, found.row)))
      throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    if (isTerminal(found.row.state))
      throw new PlatformError('ALREADY_TERMINAL', `The message is already ${found.row.state}.`);
    return cancelLocked(tx, found.row, reason);
  });
  announceCanceled(core, canceled);
}

/** Cancels all that a session has in flight, in the caller's transaction. @returns the messages that were canceled */
export async function cancelSessionMessages(
  tx: Tx,
  tenantId: string,
  sessionId: string,
  reason: string,
): Promise<Canceled[]> {
  const rows = await tx.query<MessageRow>(
    `SELECT * FROM messages WHERE tenant_id = $1 AND session_id = $2 AND state IN ('submitted', 'working', 'input-required')
      ORDER BY message_id FOR UPDATE`,
    [tenantId, sessionId],
  );
  const canceled: Canceled[] = [];
  for (const row of rows) canceled.push(await cancelLocked(tx, row, reason));
  return canceled;
}
