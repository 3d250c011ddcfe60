import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** Failures of another kind than an absent database (a deadlock, a statement's time limit) that are retried. */
const MAX_FAILURES = 5;

/**
 * Retries database work until it succeeds. It retries forever, with growing pauses, while the database cannot be reached: an agent's
 * answer must not be lost. It throws any other failure after `MAX_FAILURES` attempts.
 * @param signal ends the retries; the promise then rejects with its reason
 */
export async function persist<T>(work: () => Promise<T>, log: Pick<Logger, 'warn'>, signal?: AbortSignal): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const away = error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
      if (!away) failures += 1;
      if (failures >= MAX_FAILURES) throw error;
      log.warn({ err: errorMessage(error), retry_in_ms: pauseMs }, 'database write failed, retrying');
    }
    await sleep(pauseMs, undefined, signal && { signal });
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  }
}
