import type { Statement } from '../db/connections/statement.js';
import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';

/** Groups of events that one batch positions at most, besides the rest of a transaction; more follow at once. */
export const GROUPS_PER_BATCH = 5_000;
/** Between two looks, in milliseconds: most of the lag from the commit of an event to its readers. */
const INTERVAL_MS = 200;

const POSITION: Statement<number | null> = {
  name: 'position_events',
  text: 'SELECT to_json(position_events($1))',
};

/**
 * Gives positions to one batch of committed groups of events.
 * @returns how many; null while another process does so
 */
export async function positionEvents(db: Db, most = GROUPS_PER_BATCH): Promise<number | null> {
  const [positioned] = await db.systemCall(POSITION, [String(most)]);
  return positioned ?? null;
}

/**
 * The sequencer: gives every committed event its position (db/functions/events/position_events.sql). It runs in every process with the worker role;
 * one at a time does the work, and any other goes on where that one stopped.
 * @param onPositioned called after a batch, for readers in this process
 */
export function createEventSequencer(db: Db, log: Logger, onPositioned: () => void): Loop {
  const work = async (): Promise<number> => {
    const positioned = (await positionEvents(db)) ?? 0;
    if (positioned > 0) onPositioned();
    return positioned >= GROUPS_PER_BATCH ? 0 : INTERVAL_MS;
  };
  return new Loop({ name: 'event sequencer', intervalMs: INTERVAL_MS, immediate: true, work, log });
}
