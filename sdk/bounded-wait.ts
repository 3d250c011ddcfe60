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

/** Waits for `work` until the signal aborts; a later result of `work` is ignored. @throws the signal's reason */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const done = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true, signal: done.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    done.abort();
  }
}
