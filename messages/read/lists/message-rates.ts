import type { MessageRates } from '../../../contracts/api/messages.js';
import { inKeyOrder } from '../../../db/pages/page.js';
import type { Db } from '../../../db/pool.js';

/** How many messages of an hour its latency is taken from, and how many failed ones are counted at most. So the cost does not grow with a tenant's messages. */
const SAMPLE = 500;
const FAILED_MAX = 10_000;

/** Accepted messages are read from usage, which is a second late. Ids are made a moment before, so an hour's last messages may be counted in the next. */
const RATES = `
  WITH hours AS MATERIALIZED (
    SELECT h AS hour, id_bound('msg', h) AS least, id_bound('msg', h + interval '1 hour') AS bound
      FROM generate_series(date_trunc('hour', now(), 'UTC') - ($2::integer - 1) * interval '1 hour', now(), interval '1 hour') h)
  SELECT h.hour, u.accepted, f.failed, t.p50, t.p95 FROM hours h
   CROSS JOIN LATERAL (SELECT coalesce(sum(x.messages), 0)::integer AS accepted FROM usage_hours x WHERE x.tenant_id = $1 AND x.hour = h.hour) u
   CROSS JOIN LATERAL (SELECT count(*)::integer AS failed FROM (SELECT 1 FROM messages m
     WHERE m.tenant_id = $1 AND m.unsuccessful_state = 'failed' AND m.message_id >= h.least AND m.message_id < h.bound LIMIT ${FAILED_MAX}) x) f
   CROSS JOIN LATERAL (
     SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY s.ms) AS p50, percentile_disc(0.95) WITHIN GROUP (ORDER BY s.ms) AS p95
       FROM (SELECT CASE WHEN m.state = 'completed' THEN greatest(0, extract(epoch FROM m.completed_at - m.created_at) * 1000)::float8 END AS ms
         FROM messages m WHERE m.tenant_id = $1 AND m.message_id >= h.least AND m.message_id < h.bound ORDER BY m.message_id DESC LIMIT ${SAMPLE}) s
      WHERE s.ms IS NOT NULL) t
   ORDER BY h.hour`;

interface RatesRow {
  hour: Date;
  accepted: number;
  failed: number;
  p50: number | null;
  p95: number | null;
}

/** How many messages were accepted in each of the last hours, how many of them failed, and how long they took. @throws PlatformError REQUEST_TIMEOUT as `inKeyOrder` */
export async function readRates(db: Db, tenantId: string, hours: number): Promise<MessageRates[]> {
  const rows = await inKeyOrder(db, tenantId, (tx) => tx.query<RatesRow>(RATES, [tenantId, hours]));
  return rows.map(({ hour, accepted, failed, p50, p95 }) => ({
    hour: hour.toISOString(),
    accepted,
    failed,
    latency_ms: { p50, p95 },
  }));
}
