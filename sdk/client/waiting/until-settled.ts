import { ApiError, isTransient } from '../api/errors.js';
import type { CallOptions } from '../api/platform-api.js';
import { pause } from '../api/retries.js';

export interface WaitOptions extends CallOptions {
  /** `terminal`: it has ended. `settled` (default): or a human has to do something. */
  until?: 'terminal' | 'settled';
  /** Time limit in milliseconds; 600,000 by default. */
  timeoutMs?: number;
}

const POLL_FIRST_MS = 100;
const POLL_MAX_MS = 1_000;
/** A request that was begun in time may take so much longer. */
const READ_MARGIN_MS = 1_000;
const READ_MS_MAX = 60_000;

/**
 * Reads something until it has settled; temporary failures of the platform are passed over.
 * @param what its name, for the error
 * @param hasSettled whether to return it
 * @throws ApiError with code `REQUEST_TIMEOUT` when it has not settled within `timeoutMs`
 */
export async function untilSettled<T>(
  what: string,
  read: (options: CallOptions) => Promise<T>,
  hasSettled: (value: T) => boolean,
  { timeoutMs = 600_000, signal }: Pick<WaitOptions, 'timeoutMs' | 'signal'>,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (let waitMs = POLL_FIRST_MS; ; waitMs = Math.min(waitMs * 2, POLL_MAX_MS)) {
    const bound = AbortSignal.timeout(Math.min(READ_MS_MAX, Math.max(0, deadline - Date.now()) + READ_MARGIN_MS));
    const value = await read({ signal: signal ? AbortSignal.any([signal, bound]) : bound }).catch((error: unknown) => {
      signal?.throwIfAborted();
      if (!bound.aborted && !isTransient(error)) throw error;
      return null;
    });
    if (value !== null && hasSettled(value)) return value;
    if (Date.now() >= deadline) {
      const text = `${what} has not settled in ${timeoutMs} ms`;
      throw new ApiError(text, { status: 408, code: 'REQUEST_TIMEOUT' });
    }
    await pause(waitMs, signal);
  }
}
