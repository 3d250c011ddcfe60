import type { Delivery, GetDeliveriesRequest } from '../contracts/api/deliveries.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/pages/page.js';
import type { Db } from '../db/pool.js';
import { idBound } from '../runtime/ids.js';
import { waitBefore } from './attempts.js';

const LISTED = `deliveries WHERE tenant_id = $1 AND ($2::text IS NULL OR rule_id = $2) AND ($3::text IS NULL OR event_type = $3)
    AND ($4::boolean IS NULL OR ($4 AND status = 'delivered') OR (NOT $4 AND status IN ('failed', 'dropped')))
    AND ($5::text IS NULL OR (message_id = $5 AND config_id IS NOT NULL))
    AND ($6::text IS NULL OR status = $6) AND ($7::text IS NULL OR delivery_id >= $7)
    AND ($8::text IS NULL OR delivery_id = $8)`;
const SELECT = `
  SELECT d.delivery_id, d.rule_id, d.message_id AS task_id, d.config_id, d.event_type, d.url, d.status, d.attempts, d.attempts_before,
         d.created_at, b.opened_at AS since, b.open_until AS next_probe_at
    FROM deliveries d LEFT JOIN receiver_breakers b
      ON d.status = 'pending' AND b.tenant_id = d.tenant_id AND b.receiver = d.receiver AND b.open_until IS NOT NULL
   WHERE d.tenant_id = $1 AND d.delivery_id = ANY ($2) ORDER BY d.delivery_id DESC`;

interface Listed extends Omit<Delivery, 'task_id' | 'config_id' | 'receiver' | 'next_attempt_at'> {
  task_id: string | null;
  config_id: string | null;
  /** Before the last redelivery. */
  attempts_before: number;
  /** Of a pending delivery whose receiver does not answer. */
  since: string | null;
  next_probe_at: string | null;
}

/** When a pending delivery is attempted again, unless its receiver gets probes only. */
function nextAttemptAt({ status, attempts, attempts_before, next_probe_at }: Listed): string | null {
  const last = attempts.at(-1);
  if (status !== 'pending' || !last || next_probe_at !== null) return next_probe_at;
  return new Date(Date.parse(last.at) + waitBefore(attempts.length - attempts_before + 1)).toISOString();
}

function shownDelivery(listed: Listed): Delivery {
  const { task_id, config_id, since, next_probe_at, attempts_before: _, ...delivery } = listed;
  const next_attempt_at = nextAttemptAt(listed);
  return {
    ...delivery,
    ...(next_attempt_at !== null && { next_attempt_at }),
    ...(task_id !== null && config_id !== null && { task_id, config_id }),
    ...(since !== null && next_probe_at !== null && { receiver: { state: 'unavailable', since, next_probe_at } }),
  };
}

/** A page of a tenant's deliveries, newest first, without bodies. */
export function listDeliveries(
  db: Db,
  tenantId: string,
  { delivery_id, rule_id, task_id, event_type, success, status, since, ...page }: GetDeliveriesRequest,
): Promise<Page<Delivery>> {
  const sinceId = since && idBound('dlv', Date.parse(since));
  const filters = [rule_id, event_type, success, task_id, status, sinceId, delivery_id];
  const values: KeyList['values'] = [tenantId, ...filters.map((value) => value ?? null)];
  const list: KeyList = { key: 'delivery_id', from: LISTED, orderBy: 'delivery_id DESC', values };
  return readPage(db, list, page, async (tx, ids) =>
    (await queryJson<Listed>(tx, SELECT, [tenantId, ids])).map(shownDelivery),
  );
}
