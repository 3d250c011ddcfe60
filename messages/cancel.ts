import { slotOf } from '../agents/agent-row.js';
import { isTerminal } from '../contracts/message-states.js';
import { isOwnMessage, type Reader } from '../contracts/permissions.js';
import type { Tx } from '../db/pool.js';
import { isTenantBusy, PlatformError } from '../runtime/errors.js';
import { newEventId } from '../runtime/ids.js';
import type { CanceledMessage, CancelOptions, SessionDeps, SessionRef } from '../sessions/session-deps.js';
import type { MessageCore, MessageRef } from './core.js';
import { logEnd } from './dispatch/message-end.js';
import { lockRunning, readMessage } from './read/read.js';

/** Messages of a session that one transaction cancels. */
const CHUNK = 200;

/** Cancels messages that are not over and whose locks the caller holds. @returns the messages as they were before */
async function cancelLocked(tx: Tx, tenantId: string, ids: string[], reason: string): Promise<CanceledMessage[]> {
  const eventIds = ids.map(newEventId);
  return tx.query<CanceledMessage>(
    `SELECT r.tenant_id, r.message_id, r.session_id, r.agent_type, r.want_agent_type, r.instance_id, r.current_dispatch_id, r.holds_slot,
            r.supervised_at IS NOT NULL OR r.state = 'input-required' AS is_watched, d.mesh_id
       FROM cancel_messages($1, $2, $3, $4) r
       LEFT JOIN dispatches d ON d.tenant_id = r.tenant_id AND d.dispatch_id = r.current_dispatch_id AND d.state = 'canceled'`,
    [tenantId, ids, reason, eventIds],
  );
}

/** After the commit: notifies streams, workflows, agents and the log of the canceled messages. */
function announceCanceled(core: MessageCore, canceled: CanceledMessage[]): void {
  for (const message of canceled) {
    const { tenant_id, message_id, current_dispatch_id: dispatch_id, mesh_id } = message;
    core.bus.publish(tenant_id, message_id, { kind: 'changed' });
    if (message.is_watched) core.workflowStarter.message(message);
    if (dispatch_id !== null) core.nodes.cancel({ tenant_id, message_id, dispatch_id, mesh_id });
    logEnd(core.log, { ...message, dispatch_id, state: 'canceled' });
    const freed = slotOf(message);
    if (freed) core.nodes.fill(freed, mesh_id);
  }
}

/**
 * Cancels a message. One transaction ends it; its node then sends CANCELED to the agent.
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
  const canceled = await core.db.tenant(tenant_id, async (tx) => {
    const running = await lockRunning(tx, ref);
    const found = await readMessage(tx, tenant_id, message_id);
    if (!found || (reader && !isOwnMessage(reader, found.row)))
      throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    if (!running || isTerminal(found.row.state))
      throw new PlatformError('ALREADY_TERMINAL', `The message is already ${found.row.state}.`);
    return cancelLocked(tx, tenant_id, [message_id], reason);
  });
  announceCanceled(core, canceled);
}

/** As `cancelMessage`, for the platform itself: it is no error if the message has ended or does not exist. */
export async function cancelIfRunning(core: MessageCore, ref: MessageRef, reason: string): Promise<void> {
  await cancelMessage(core, ref, reason).catch((error: unknown) => {
    if (isTenantBusy(error) || !(error instanceof PlatformError && error.statusCode < 500)) throw error;
  });
}

/** The next messages in flight of a session, locked. */
const LOCK_CHUNK = `
  SELECT message_id FROM running_messages
   WHERE tenant_id = $1 AND session_id = $2 AND state IN ('submitted', 'working', 'input-required') AND created_at <= coalesce($3::timestamptz, 'infinity')
   ORDER BY message_id LIMIT ${CHUNK} FOR UPDATE`;

async function cancelChunk(tx: Tx, session: SessionRef, options: CancelOptions): Promise<CanceledMessage[]> {
  const { tenant_id, session_id } = session;
  const rows = await tx.query<{ message_id: string }>(LOCK_CHUNK, [tenant_id, session_id, options.acceptedUntil]);
  if (rows.length === 0) return [];
  const ids = rows.map(({ message_id }) => message_id);
  return cancelLocked(tx, tenant_id, ids, options.reason);
}

/**
 * Cancels the messages in flight of a session, `CHUNK` in a transaction: no lock is held for longer than one transaction takes, and other work has its turn in
 * between. After a crash the rest is still in flight.
 */
async function cancelInFlight(core: MessageCore, session: SessionRef, options: CancelOptions): Promise<void> {
  for (;;) {
    const canceled = await core.db.tenant(session.tenant_id, (tx) => cancelChunk(tx, session, options));
    announceCanceled(core, canceled);
    if (canceled.length === 0) return;
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
      fill: (agent) => core.nodes.fill(agent),
    },
    wakeSession: (ref) => core.workflowStarter.session(ref),
  };
}
