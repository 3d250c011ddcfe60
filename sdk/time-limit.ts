import { setTimeout as delay } from 'node:timers/promises';

/** Waits for `work` to settle, but not for longer than that. @throws what `work` throws within that time */
export async function settledWithin(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([work, delay(timeoutMs, undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}
