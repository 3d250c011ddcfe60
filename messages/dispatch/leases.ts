import type { Db } from '../../db/pool.js';
import type { MessageRef } from '../core.js';

const RENEW = `
  WITH mine AS MATERIALIZED (
    SELECT tenant_id, message_id FROM unnest($1::text[], $2::text[]) AS given (tenant_id, message_id) JOIN running_messages m USING (tenant_id, message_id)
     WHERE m.lease_epoch = 0 AND m.wake_requested_at IS NOT NULL AND m.state = 'working' FOR UPDATE OF m SKIP LOCKED)
  UPDATE running_messages m SET wake_requested_at = now() FROM mine WHERE m.tenant_id = mine.tenant_id AND m.message_id = mine.message_id`;

const RUNNING = `
  SELECT m.message_id FROM unnest($1::text[], $2::text[]) AS given (tenant_id, message_id) JOIN running_messages m USING (tenant_id, message_id)
   WHERE m.state IN ('submitted', 'working', 'input-required')`;

const columnsOf = (messages: MessageRef[]) => [
  messages.map(({ tenant_id }) => tenant_id),
  messages.map(({ message_id }) => message_id),
];

/** The ids of those of these messages that are not over: another node may have taken a queued one, and ended it. */
export async function stillRunning(db: Db, messages: MessageRef[]): Promise<Set<string>> {
  const rows = await db.system((tx) => tx.query<{ message_id: string }>(RUNNING, columnsOf(messages)));
  return new Set(rows.map(({ message_id }) => message_id));
}

/**
 * Renews the leases of those messages that no workflow has taken over. A row that is locked is at work and not waited for, since the statement holds
 * those of other tenants; the next renewal comes long before the lease ends.
 */
export async function renewLeases(db: Db, messages: MessageRef[]): Promise<void> {
  await db.system((tx) => tx.query(RENEW, columnsOf(messages)));
}
