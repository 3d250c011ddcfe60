import { BY_INDEX } from '../db/pages/page.js';
import type { Db } from '../db/pool.js';
import { idBound } from '../runtime/ids.js';
import { type Lifetime, partsAtWork, type TimeWindow, type Wait, windowsOf } from './time-windows.js';

/** Dispatches that one statement looks at. */
const LOOKED_AT_ONCE = 20_000;

const NEXT = `
  SELECT count(*)::integer AS looked_at, max(d.dispatch_id) AS last,
         coalesce(array_agg(d.dispatch_id) FILTER (WHERE d.message_id = ANY ($2)), '{}') AS found
    FROM (SELECT x.dispatch_id, x.message_id FROM dispatches x
           WHERE x.tenant_id = $1 AND x.dispatch_id > $3 AND x.dispatch_id < $4 ORDER BY x.dispatch_id LIMIT $5) d`;
const WAITS = `
  SELECT message_id, requested_at, ended_at FROM input_requests WHERE tenant_id = $1 AND message_id = ANY ($2) ORDER BY requested_at, request_id`;

type Known = Lifetime & { message_id: string };

/** When the messages may have got dispatches. */
async function windowsAtWork(db: Db, tenantId: string, messages: readonly Known[]): Promise<TimeWindow[]> {
  const ids = messages.map(({ message_id }) => message_id);
  const waits = await db.system((tx) => tx.query<Wait & { message_id: string }>(WAITS, [tenantId, ids]));
  const waitsOf = (id: string) => waits.filter(({ message_id }) => message_id === id);
  return windowsOf(messages.flatMap((message) => partsAtWork(message, waitsOf(message.message_id))));
}

/**
 * The dispatches of messages that are over, found by the time in their ids, since an index by message would be written with every message. All
 * dispatches of the tenant in that time are looked at, in short statements: a message may have been at work for a day.
 * @param atOnce how many dispatches a statement looks at
 */
export async function findDispatches(
  db: Db,
  tenantId: string,
  messages: readonly Known[],
  atOnce = LOOKED_AT_ONCE,
): Promise<string[]> {
  const ids = messages.map(({ message_id }) => message_id);
  const dispatchIds: string[] = [];
  for (const { fromMs, toMs } of await windowsAtWork(db, tenantId, messages)) {
    let after = idBound('dsp', fromMs);
    for (let isMore = true; isMore; ) {
      const values = [tenantId, ids, after, idBound('dsp', toMs), atOnce];
      const [next] = await db.system(async (tx) => {
        await tx.query(BY_INDEX);
        return tx.query<{ looked_at: number; last: string | null; found: string[] }>(NEXT, values);
      });
      dispatchIds.push(...(next?.found ?? []));
      isMore = next?.looked_at === atOnce;
      after = next?.last ?? after;
    }
  }
  return dispatchIds;
}
