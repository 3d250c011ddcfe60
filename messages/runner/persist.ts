import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, isTransient } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

const FIRST_PAUSE_MS = 50;
const PAUSE_MAX_MS = 2_000;
/** Retried failures that are neither an absent database nor too much work, for example a deadlock or a statement's time limit. */
const FAILURES_MAX = 5;

/**
 * Retries database work until it succeeds. It retries forever, with growing pauses, while the database cannot be reached or is busy with
 * work of the same tenant: an agent's answer must not be lost. It throws any other failure after `FAILURES_MAX` attempts.
 * @param signal ends the retries; the promise then rejects with its reason
 */
export async function persist<T>(work: () => Promise<T>, log: Pick<Logger, 'warn'>, signal?: AbortSignal): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) failures += 1;
      if (failures >= FAILURES_MAX) throw error;
      log.warn({ err: errorMessage(error), retry_in_ms: pauseMs }, 'database write failed, retrying');
    }
    await sleep(pauseMs, undefined, signal && { signal });
    pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
  }
}
