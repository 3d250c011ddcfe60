import { setTimeout as delay } from 'node:timers/promises';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { GROUPS_PER_BATCH, positionEvents } from './event-sequencer.js';

/** While another process positions events: until the next try, and the end of the tries, in milliseconds. */
const PAUSE_MS = 10;
const WAIT_MS = 5_000;

const FIND = `
  SELECT cursor_at(position_of(g.tenant_id, g.group_id, g.transaction_id), place_of($2)) AS position FROM event_groups g
   WHERE g.tenant_id = uuid_of($1) AND g.group_id = group_of($2) AND place_of($2) < count_of(g.types)`;
const EVENT_ID = /^evt_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Positions what is committed now, in place of the sequencer, which may be a moment behind. Repeats it until `isDone` gives something. */
async function positioned<T>(db: Db, isDone: (hasRun: boolean) => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + WAIT_MS;
  for (let hasRun = false; ; ) {
    const result = await isDone(hasRun);
    if (result !== undefined) return result;
    if (performance.now() > deadline) {
      throw new PlatformError('SERVICE_UNAVAILABLE', 'Events wait for their positions. Try again.');
    }
    const count = await positionEvents(db);
    hasRun = count !== null && count < GROUPS_PER_BATCH;
    if (count === null) await delay(PAUSE_MS);
  }
}

/** The cursor after every event that is committed now. @throws PlatformError SERVICE_UNAVAILABLE when many still wait for a position */
export function newestCursor(db: Db): Promise<number> {
  return positioned(db, async (hasRun) => {
    if (!hasRun) return undefined;
    const [row] = await db.system((tx) => tx.query<{ head: number }>('SELECT event_head() AS head', [], 'event_head'));
    return row?.head;
  });
}

/**
 * The cursor after an event of the tenant.
 * @throws PlatformError NOT_FOUND when there is no such event, or no longer; SERVICE_UNAVAILABLE as `newestCursor`
 */
export function cursorAfter(db: Db, tenantId: string, eventId: string): Promise<number> {
  return positioned(db, async () => {
    if (EVENT_ID.test(eventId)) {
      const [row] = await db.tenant(tenantId, (tx) =>
        tx.query<{ position: number | null }>(FIND, [tenantId, eventId], 'find_event_position'),
      );
      if (row) return row.position ?? undefined;
    }
    const message = 'last_event_id: no such event is kept. List what was missed, and stream without it.';
    throw new PlatformError('NOT_FOUND', message);
  });
}
