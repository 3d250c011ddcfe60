import { slotOf } from '../agents/agent-row.js';
import { isTerminal } from '../contracts/api/messages.js';
import { isOwnMessage, type Reader } from '../contracts/permissions.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { newEventId } from '../runtime/ids.js';
import type {
  CanceledMessage,
  Cancellation,
  CancelOptions,
  SessionDeps,
  SessionRef,
} from '../sessions/session-deps.js';
import type { MessageCore, MessageRef } from './core.js';
import { logEnd } from './dispatch/message-end.js';
import { wakeForFreed } from './dispatch/wake-queued.js';
import { lockRunning, readMessage } from './read/read.js';

/** Messages of a session that one transaction cancels. */
const CHUNK = 200;

/** Cancels messages that are not over and whose locks the caller holds. @returns the messages as they were before */
async function cancelLocked(tx: Tx, tenantId: string, ids: string[], reason: string): Promise<CanceledMessage[]> {
  const eventIds = ids.map(newEventId);
  return tx.query<CanceledMessage>(
    `SELECT tenant_id, message_id, session_id, agent_type, instance_id, current_dispatch_id, holds_slot
       FROM cancel_messages($1, $2, $3, $4)`,
    [tenantId, ids, reason, eventIds],
  );
}

/** After the commit: notifies streams, workflows and the log of the canceled messages, and wakes the queued ones. */
function announceCanceled(core: MessageCore, { canceled, woken }: Cancellation): void {
  for (const message of canceled) {
    core.bus.publish(message.tenant_id, message.message_id, { kind: 'changed' });
    core.workflowStarter.message(message);
    logEnd(core.log, { ...message, dispatch_id: message.current_dispatch_id, state: 'canceled' });
    for (const { instance_id } of slotOf(message)) core.fill({ tenant_id: message.tenant_id, instance_id });
  }
  for (const queued of woken) core.workflowStarter.message(queued);
}

/**
 * Cancels a message (specification section 3). One transaction ends it; its workflow then sends CANCELED to the agent.
 * @param reader must see the message; null for the platform itself
 * @throws PlatformError NOT_FOUND, ALREADY_TERMINAL
 */
export async function cancelMessage(
  core: MessageCore,
  ref: MessageRef,
  reason: string,
  reader: Reader | null = null,
): Promise<void> {
  const { tenant_id, message_id } = ref;
  const cancellation = await core.db.tenant(tenant_id, async (tx) => {
    const running = await lockRunning(tx, ref);
    const found = await readMessage(tx, tenant_id, message_id);
    if (!found || (reader && !isOwnMessage(reader, found.row)))
      throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    if (!running || isTerminal(found.row.state))
      throw new PlatformError('ALREADY_TERMINAL', `The message is already ${found.row.state}.`);
    const canceled = await cancelLocked(tx, tenant_id, [message_id], reason);
    return { canceled, woken: await wakeForFreed(tx, tenant_id, canceled.flatMap(slotOf)) };
  });
  announceCanceled(core, cancellation);
}

/** The next messages in flight of a session, locked. */
const LOCK_CHUNK = `
  SELECT message_id FROM running_messages
   WHERE tenant_id = $1 AND session_id = $2 AND state IN ('submitted', 'working', 'input-required') AND created_at <= coalesce($3::timestamptz, 'infinity')
   ORDER BY message_id LIMIT ${CHUNK} FOR UPDATE`;

async function cancelChunk(tx: Tx, session: SessionRef, options: CancelOptions): Promise<Cancellation> {
  const { tenant_id, session_id } = session;
  const rows = await tx.query<{ message_id: string }>(LOCK_CHUNK, [tenant_id, session_id, options.acceptedUntil]);
  if (rows.length === 0) return { canceled: [], woken: [] };
  const ids = rows.map(({ message_id }) => message_id);
  const canceled = await cancelLocked(tx, tenant_id, ids, options.reason);
  return { canceled, woken: await wakeForFreed(tx, tenant_id, canceled.flatMap(slotOf)) };
}

/**
 * Cancels the messages in flight of a session, `CHUNK` in a transaction: no lock is held for longer than one takes, and other work has its
 * turn in between. What a crash leaves in flight is in flight as before.
 */
async function cancelInFlight(core: MessageCore, session: SessionRef, options: CancelOptions): Promise<void> {
  for (;;) {
    const cancellation = await core.db.tenant(session.tenant_id, (tx) => cancelChunk(tx, session, options));
    announceCanceled(core, cancellation);
    if (cancellation.canceled.length === 0) return;
  }
}

/** The dependencies of `sessions/`, from those of `messages/`. */
export function sessionDeps(core: MessageCore): SessionDeps {
  return {
    db: core.db,
    log: core.log,
    policies: core.policies,
    messages: {
      cancelInFlight: (session, options) => cancelInFlight(core, session, options),
      wakeForFreed,
      announce: (cancellation) => announceCanceled(core, cancellation),
    },
    wakeSession: (ref) => core.workflowStarter.session(ref),
  };
}
