import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** Tries of work that fails for another reason than the database being away (a deadlock, a statement's time limit). */
const MAX_FAILURES = 5;

/**
 * Runs database work until it succeeds. While the database cannot be reached it is tried for ever, with growing pauses: what
 * an agent has answered must not be lost. Any other failure is thrown after `MAX_FAILURES` tries.
 * @param signal ends the trying between two tries; rejects with its reason
 */
export async function persist<T>(work: () => Promise<T>, log: Logger, signal?: AbortSignal): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const away = error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
      if (!away) failures += 1;
      if (failures >= MAX_FAILURES) throw error;
      log.warn({ err: errorMessage(error), retry_in_ms: pauseMs }, 'mesh could not write to the database yet');
    }
    await sleep(pauseMs, undefined, signal && { signal });
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  }
}
