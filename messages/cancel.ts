import { slotOf } from '../agents/agent-row.js';
import { isTerminal } from '../contracts/messages.js';
import { isOwnMessage, type Reader } from '../contracts/permissions.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { CanceledMessage, Cancellation, SessionDeps, SessionRef } from '../sessions/session-deps.js';
import type { MessageCore, MessageRef } from './core.js';
import { logEnd } from './dispatch/end-log.js';
import { closeDispatch, finishCanceled, openDispatchOf, withdrawRequest } from './dispatch/finish.js';
import { callForFreed } from './dispatch/wake-queued.js';
import { readMessage } from './read/read.js';
import type { MessageRow } from './read/rows.js';

/** Cancels a message whose row is locked and not terminal: dispatch, open request, row and events. */
async function cancelLocked(tx: Tx, row: MessageRow, reason: string): Promise<CanceledMessage> {
  const dispatch = await openDispatchOf(tx, row);
  if (dispatch) await closeDispatch(tx, row, dispatch, 'canceled', 'CANCELED');
  await withdrawRequest(tx, row);
  await finishCanceled(tx, row, reason);
  const { tenant_id, message_id, session_id, agent_type, instance_id, current_dispatch_id, holds_slot } = row;
  return { tenant_id, message_id, session_id, agent_type, instance_id, current_dispatch_id, holds_slot };
}

/** Tells watchers, workflows and the log what was canceled, and wakes who was called. To be called after the commit. */
function announceCanceled(core: MessageCore, { canceled, called }: Cancellation): void {
  for (const message of canceled) {
    const { tenant_id, message_id, session_id, current_dispatch_id } = message;
    core.bus.publish(tenant_id, message_id, { kind: 'changed' });
    core.workflowStarter.message({ tenant_id, message_id, session_id });
    logEnd(core.log, { ...message, dispatch_id: current_dispatch_id, state: 'canceled' });
  }
  for (const waiting of called) core.workflowStarter.message(waiting);
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
  const cancellation = await core.db.tenant(ref.tenant_id, async (tx) => {
    const found = await readMessage(tx, ref.tenant_id, ref.message_id, true);
    if (!found || (reader && !isOwnMessage(reader, found.row)))
      throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    if (isTerminal(found.row.state))
      throw new PlatformError('ALREADY_TERMINAL', `The message is already ${found.row.state}.`);
    const canceled = await cancelLocked(tx, found.row, reason);
    return { canceled: [canceled], called: await callForFreed(tx, ref.tenant_id, slotOf(canceled)) };
  });
  announceCanceled(core, cancellation);
}

/** Cancels all that a session has in flight, in the caller's transaction. @returns the messages that were canceled */
async function cancelSessionMessages(tx: Tx, session: SessionRef, reason: string): Promise<CanceledMessage[]> {
  const rows = await tx.query<MessageRow>(
    `SELECT * FROM messages WHERE tenant_id = $1 AND session_id = $2 AND state IN ('submitted', 'working', 'input-required')
      ORDER BY message_id FOR UPDATE`,
    [session.tenant_id, session.session_id],
  );
  const canceled: CanceledMessage[] = [];
  for (const row of rows) canceled.push(await cancelLocked(tx, row, reason));
  return canceled;
}

/** What sessions need, out of what messages work with. */
export function sessionDeps(core: MessageCore): SessionDeps {
  return {
    db: core.db,
    log: core.log,
    messages: {
      cancelAll: cancelSessionMessages,
      wakeForFreed: callForFreed,
      announce: (cancellation) => announceCanceled(core, cancellation),
    },
    wakeSession: (ref) => core.workflowStarter.session(ref),
  };
}
