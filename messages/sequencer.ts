import type { Db } from '../db/pool.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

const BATCH = 1_000;
const IDLE_MS = 250;
/** Any 64-bit number that nothing else locks. */
const LOCK = 7_316_501;

const PLACE = `
  WITH taken AS (
    DELETE FROM event_outbox
     WHERE event_id IN (SELECT event_id FROM event_outbox ORDER BY occurred_at, event_id LIMIT ${BATCH})
    RETURNING event_id, tenant_id, occurred_at)
  INSERT INTO event_positions (event_id, tenant_id) SELECT event_id, tenant_id FROM taken ORDER BY occurred_at, event_id
  RETURNING pos`;

/**
 * Gives committed events their place in `event_positions`. Sequences and UUIDv7 commit out of order, so no cursor runs over them;
 * one sequencer at a time, on any node, appends what is visible to it (architecture.md, decision 3).
 * @returns how many were placed; 0 also when another node holds the lock
 */
async function placeEvents(db: Db): Promise<number> {
  return db.system(async (tx) => {
    const [lock] = await tx.query<{ held: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS held', [LOCK]);
    return lock?.held ? (await tx.query(PLACE)).length : 0;
  });
}

/** Runs the sequencer until stopped; a database that is away is waited for. */
export function startSequencer(db: Db, log: Logger): { stop(): Promise<void> } {
  let stopped = false;
  let wake = () => {};
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const loop = async () => {
    let failing = false;
    while (!stopped) {
      try {
        const placed = await placeEvents(db);
        failing = false;
        if (placed < BATCH) await pause(IDLE_MS);
      } catch (error) {
        if (!failing) log.warn({ err: errorMessage(error) }, 'events cannot be placed; trying again');
        failing = true;
        await pause(IDLE_MS * 4);
      }
    }
  };
  const done = loop();
  return {
    stop: async () => {
      stopped = true;
      wake();
      await done;
    },
  };
}
