import { type IdRange, idBound, madeAtMs, monthStartMs, uuidBound, uuidOf } from '../runtime/ids.js';
import type { Db } from './pool.js';

/** More than the minute of `group_minute` (db/migrations/0005_events.sql), in milliseconds. */
const MINUTE_MS = 65_536;

type Ids = { first_id: string | null; last_id: string | null };

/** From the first id to the end of the last one's month, which stays the same while messages come: a list is known by its filters (db/pages/page.ts). */
function rangeOf({ first_id, last_id }: Ids, boundAt: (atMs: number) => string): IdRange {
  const [first, last] = [first_id, last_id].map((id) => (id === null ? null : madeAtMs(uuidOf(id))));
  return {
    least: first == null ? null : boundAt(first - MINUTE_MS),
    bound: last == null ? null : boundAt(monthStartMs(last + MINUTE_MS, 1)),
  };
}

/** The ids of a session's messages are in this range, so that a list reads the partitions of its months. Without limits where it has none. */
export async function messageIdsOf(db: Db, tenantId: string, sessionId: string): Promise<IdRange> {
  const text = 'SELECT first_id, last_id FROM message_ids_of_session($1, $2)';
  const [ids] = await db.call<Ids>(tenantId, 'message_ids_of_session', text, [tenantId, sessionId]);
  return rangeOf(ids ?? { first_id: null, last_id: null }, (atMs) => idBound('msg', atMs));
}

/** As `messageIdsOf`, for the session's groups of events. */
export async function groupIdsOf(db: Db, tenantId: string, sessionId: string): Promise<IdRange> {
  const text = 'SELECT first_id, last_id FROM group_ids_of_session($1, $2)';
  const [ids] = await db.call<Ids>(tenantId, 'group_ids_of_session', text, [tenantId, sessionId]);
  return rangeOf(ids ?? { first_id: null, last_id: null }, uuidBound);
}
