import { setTimeout as delay } from 'node:timers/promises';
import type { Statement } from '../db/connections/statement.js';
import { isLockTimeout } from '../db/errors.js';
import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { shareNext } from '../runtime/promises/share-next.js';
import { GROUPS_PER_BATCH, positionEvents } from '../telemetry/event-sequencer.js';

/** Between two turns, in milliseconds: most of the lag of the sums. */
const INTERVAL_MS = 1_000;
/** How long a reader waits for what has just happened. */
const CATCH_UP_MS = 2_000;
/** Between two looks whether another process has given positions. */
const LOOK_MS = 10;

const ROLL_UP: Statement<number | null> = {
  name: 'roll_up_usage',
  text: 'SELECT to_json(roll_up_usage($1, $2))',
};

/**
 * Adds up one batch of groups of events (db/functions/events/usage.sql). The sums and the cursor change in one transaction, so a batch that was cut off is
 * counted by the next turn, on this node or another.
 * @param options.waits for another process that adds up at this moment
 * @param options.most groups of this batch
 * @returns how many groups there were: with `GROUPS_PER_BATCH` and more, further ones may follow. Null while another process adds up
 */
export async function rollUpUsage(db: Db, { waits = false, most = GROUPS_PER_BATCH } = {}): Promise<number | null> {
  const [groups] = await db.systemCall(ROLL_UP, [String(most), String(waits)]);
  return groups ?? null;
}

/** Gives every event that was committed before the call its position. @returns false when that takes longer than `untilMs` */
async function positionAll(db: Db, untilMs: number): Promise<boolean> {
  for (;;) {
    const positioned = await positionEvents(db);
    if (positioned !== null && positioned < GROUPS_PER_BATCH) return true;
    if (performance.now() > untilMs) return false;
    if (positioned === null) await delay(LOOK_MS);
  }
}

/**
 * Adds up everything that was committed before the call.
 * @param untilMs on `performance.now()`: when to give up
 * @returns whether all of it is in the sums
 * @throws a lock timeout where another process has held the cursor for two seconds
 */
export async function rollUpAll(db: Db, untilMs = Number.POSITIVE_INFINITY): Promise<boolean> {
  if (!(await positionAll(db, untilMs))) return false;
  for (;;) {
    const groups = await rollUpUsage(db, { waits: true });
    if (groups !== null && groups < GROUPS_PER_BATCH) return true;
    if (performance.now() > untilMs) return false;
  }
}

/** As `rollUpAll`, for readers: after two seconds they have what there is. Gives whether that is everything. */
export type CatchUp = () => Promise<boolean>;

/** One for each process: any number of readers take one connection. */
export function createCatchUp(db: Db): CatchUp {
  return shareNext(async () => {
    try {
      return await rollUpAll(db, performance.now() + CATCH_UP_MS);
    } catch (error) {
      if (isLockTimeout(error)) return false;
      throw error;
    }
  });
}

/** The loop that adds up usage. Any number of processes may run it; one at a time does the work. */
export function createUsageRollUp(db: Db, log: Logger): Loop {
  const work = async (): Promise<number> => {
    const events = (await rollUpUsage(db)) ?? 0;
    return events >= GROUPS_PER_BATCH ? 0 : INTERVAL_MS;
  };
  return new Loop({ name: 'usage roll-up', intervalMs: INTERVAL_MS, immediate: true, work, log });
}
