import type { DeliveryInput } from '../contracts/workflows.js';
import type { Db } from '../db/pool.js';

const ALERTS = `
  SELECT tenant_id, session_id, delivery_id, event_type, event_id, rule_id, channel_id FROM deliveries
   WHERE tenant_id = $1 AND event_id = ANY ($2)`;
const NOTIFICATIONS = `
  SELECT tenant_id, session_id, delivery_id, event_type, message_id, config_id FROM deliveries
   WHERE tenant_id = $1 AND message_id = ANY ($2) AND config_id IS NOT NULL`;

/** The deliveries of alerts about these events. The ids of their workflows name the event. */
export function alertsAbout(db: Db, tenantId: string, eventIds: readonly string[]): Promise<DeliveryInput[]> {
  return db.system((tx) => tx.query<DeliveryInput>(ALERTS, [tenantId, eventIds]));
}

/** The push notifications about these messages. */
export function notificationsAbout(db: Db, tenantId: string, messageIds: readonly string[]): Promise<DeliveryInput[]> {
  return db.system((tx) => tx.query<DeliveryInput>(NOTIFICATIONS, [tenantId, messageIds]));
}
