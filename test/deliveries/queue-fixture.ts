import type { Db } from '../../db/pool.js';
import { enqueue } from '../../deliveries/queue.js';
import { newId } from '../../runtime/ids.js';
import type { FreshDatabase } from '../setup/database.js';

/** Queues deliveries of a tenant, one to each of these receivers. */
export async function queueDeliveries(
  db: Db,
  tenant_id: string,
  receivers: string[],
  event_type = 'agent.registered',
): Promise<void> {
  const event = { session_id: '', event_id: 'evt_1', event_type };
  const deliveries = receivers.map((receiver, nth) => ({
    receiver,
    input: { tenant_id, delivery_id: `${event_type}_${nth}`, ...event, rule_id: 'rule_1', channel_id: 'chn_1' },
  }));
  await db.tenant(tenant_id, (tx) => enqueue(tx, deliveries));
}

/** Writes a rule about registrations of agents with one channel. */
export async function insertRule(
  database: FreshDatabase,
  tenant_id: string,
  { type, config }: { type: 'webhook' | 'email'; config: object },
): Promise<{ tenant_id: string; rule_id: string; channel_id: string }> {
  const ids = { tenant_id, rule_id: newId('rule'), channel_id: newId('chn') };
  await database.query(
    `INSERT INTO alert_rules (tenant_id, rule_id, name, description, event, severity, threshold, window_seconds, cooldown_seconds, enabled)
     VALUES ($1, $2, 'rule', '', 'agent.registered', 'info', 1, 60, 0, true)`,
    [tenant_id, ids.rule_id],
  );
  await database.query(
    `INSERT INTO alert_channels (tenant_id, rule_id, channel_id, place, type, enabled, config) VALUES ($1, $2, $3, 0, $4, true, $5)`,
    [tenant_id, ids.rule_id, ids.channel_id, type, JSON.stringify(config)],
  );
  return ids;
}
