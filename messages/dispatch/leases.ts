import type { Db } from '../../db/pool.js';
import type { MessageRef } from '../core.js';

const RENEW = `
  UPDATE running_messages m SET wake_requested_at = now() FROM unnest($1::text[], $2::text[]) AS mine (tenant_id, message_id)
   WHERE m.tenant_id = mine.tenant_id AND m.message_id = mine.message_id AND m.lease_epoch = 0 AND m.wake_requested_at IS NOT NULL
     AND m.state = 'working'`;

/** Renews the leases of those messages that no workflow has taken over. */
export async function renewLeases(db: Db, messages: MessageRef[]): Promise<void> {
  const values = [messages.map(({ tenant_id }) => tenant_id), messages.map(({ message_id }) => message_id)];
  await db.system((tx) => tx.query(RENEW, values));
}
