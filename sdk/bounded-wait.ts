import { setTimeout as delay } from 'node:timers/promises';

/** Waits up to `timeoutMs` for `work` to settle; resolves on timeout as well. @throws what `work` rejects with in that time */
export async function settledWithin(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([work, delay(timeoutMs, undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}

/** Waits for `waitMs`, or until the signal is aborted. */
export async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal }).catch(() => undefined);
}
