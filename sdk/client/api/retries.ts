import { isTransient, retryAfterMs } from './errors.js';

const RETRIES = 3;
const RETRY_FIRST_MS = 200;
const RETRY_AFTER_MS_MAX = 30_000;

/** Up to four attempts: after 0.2, 0.4 and 0.8 s (±25 %), or as long as the platform asks to wait. */
export async function withRetries<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (failures >= RETRIES || !isTransient(error) || signal?.aborted) throw error;
      await pause(retryWaitMs(error, failures), signal);
    }
  }
}

function retryWaitMs(error: unknown, failures: number): number {
  const retryAfter = retryAfterMs(error);
  if (retryAfter !== undefined) return Math.min(retryAfter, RETRY_AFTER_MS_MAX);
  return RETRY_FIRST_MS * 2 ** failures * (0.75 + Math.random() / 2);
}

/** Waits for `waitMs`. @throws the signal's reason once it is aborted */
export function pause(waitMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = () => end(() => reject(signal?.reason));
    const timer = setTimeout(() => end(resolve), waitMs);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort);
  });
}
