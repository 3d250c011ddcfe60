import type { Delivery, DeliveryStatus, GetDeliveriesRequest } from '../contracts/api/deliveries.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/page.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { inQueue } from './alert-deliveries.js';
import { enqueue } from './queue.js';

const LISTED = `deliveries WHERE tenant_id = $1 AND ($2::text IS NULL OR rule_id = $2) AND ($3::text IS NULL OR event_type = $3)
    AND ($4::boolean IS NULL OR ($4 AND status = 'delivered') OR (NOT $4 AND status IN ('failed', 'dropped')))`;
const SELECT = `
  SELECT delivery_id, rule_id, event_type, url, status, attempts FROM deliveries
   WHERE tenant_id = $1 AND delivery_id = ANY ($2) ORDER BY delivery_id DESC`;

/** A page of a tenant's deliveries, newest first, without bodies. */
export function listDeliveries(
  db: Db,
  tenantId: string,
  { rule_id, event_type, success, ...page }: GetDeliveriesRequest,
): Promise<Page<Delivery>> {
  const values: KeyList['values'] = [tenantId, rule_id ?? null, event_type ?? null, success ?? null];
  const list: KeyList = { key: 'delivery_id', from: LISTED, orderBy: 'delivery_id DESC', values };
  return readPage(db, list, page, (tx, ids) => queryJson<Delivery>(tx, SELECT, [tenantId, ids]));
}

const REPEAT = `
  UPDATE deliveries d SET status = 'pending', ended_at = NULL, attempts_before = jsonb_array_length(attempts)
   WHERE d.tenant_id = $1 AND d.delivery_id = $2 AND d.status <> 'pending'
     AND EXISTS (SELECT 1 FROM alert_channels c WHERE c.tenant_id = d.tenant_id AND c.channel_id = d.channel_id)
  RETURNING tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, receiver, attempts_before + 1 AS starts`;

interface Repeated extends Record<string, unknown> {
  tenant_id: string;
  delivery_id: string;
  event_id: string;
  rule_id: string;
  channel_id: string;
  event_type: string;
  session_id: string;
  receiver: string;
  starts: number;
}

/**
 * Sends a delivery again: the same bytes under the same delivery_id, with new attempts.
 * @throws PlatformError NOT_FOUND; CONFLICT while it is still being sent, and after its channel was removed
 */
export async function redeliver(db: Db, tenantId: string, deliveryId: string): Promise<DeliveryStatus> {
  return db.tenant<DeliveryStatus>(tenantId, async (tx) => {
    const one = 'SELECT status FROM deliveries WHERE tenant_id = $1 AND delivery_id = $2';
    const [found] = await tx.query<{ status: DeliveryStatus }>(one, [tenantId, deliveryId]);
    if (!found) throw new PlatformError('NOT_FOUND', 'There is no delivery of that delivery_id.');
    const [repeated] = await tx.query<Repeated>(REPEAT, [tenantId, deliveryId]);
    if (!repeated) {
      const pending = 'The delivery is still being sent.';
      const gone = 'The channel of the delivery was removed.';
      throw new PlatformError('CONFLICT', found.status === 'pending' ? pending : gone);
    }
    await enqueue(tx, [inQueue(repeated)]);
    return 'pending';
  });
}
