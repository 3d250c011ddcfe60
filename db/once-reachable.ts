import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage, isTransient } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** How long the start waits for a database that has been migrated and is too busy to answer, in milliseconds. */
const BUSY_MS = 60_000;
const ASKED_AGAIN_MS = 1_000;

/**
 * Does what the start of a process needs of the database, again and again while that is too busy or away.
 * @throws what `work` throws otherwise, and after a minute
 */
export async function onceReachable<T>(work: () => Promise<T>, log: Logger): Promise<T> {
  const untilMs = performance.now() + BUSY_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error) || performance.now() > untilMs) throw error;
      log.warn({ err: errorMessage(error) }, 'the database does not answer yet, trying again');
      await delay(ASKED_AGAIN_MS);
    }
  }
}
