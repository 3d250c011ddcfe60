import type { Db } from '../db/pool.js';
import type { NamedDelivery } from '../messages/supervise/workflow-erasure.js';

type Row = NamedDelivery & Record<string, unknown>;

const ALERTS = `
  SELECT tenant_id, session_id, delivery_id, event_type, event_id, rule_id, channel_id FROM deliveries
   WHERE tenant_id = $1 AND event_id = ANY ($2)`;
const NOTIFICATIONS = `
  SELECT tenant_id, session_id, delivery_id, event_type, message_id, config_id FROM deliveries
   WHERE tenant_id = $1 AND message_id = ANY ($2) AND config_id IS NOT NULL`;

/** The deliveries of alerts about these events. The ids of their workflows name the event. */
export function alertsAbout(db: Db, tenantId: string, eventIds: readonly string[]): Promise<NamedDelivery[]> {
  return db.system((tx) => tx.query<Row>(ALERTS, [tenantId, eventIds]));
}

/** The push notifications about these messages. */
export function notificationsAbout(db: Db, tenantId: string, messageIds: readonly string[]): Promise<NamedDelivery[]> {
  return db.system((tx) => tx.query<Row>(NOTIFICATIONS, [tenantId, messageIds]));
}
