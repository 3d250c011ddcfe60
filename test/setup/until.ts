import { setTimeout as sleep } from 'node:timers/promises';

/** Generous: the machine may be busy. A condition that holds ends the wait at once. */
const DEFAULT_TIMEOUT_MS = 30_000;
const FIRST_PAUSE_MS = 10;
const MAX_PAUSE_MS = 200;

export interface UntilOptions {
  timeoutMs?: number;
  /** What is waited for, in words, for the error. */
  what?: string;
}

/**
 * Asks again and again until the condition gives something truthy, which it returns. A condition that throws counts as
 * not yet. Rejects after `timeoutMs` with the last value or error.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, false | 0 | '' | null | undefined>> {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, MAX_PAUSE_MS)) {
    try {
      const value = await condition();
      if (value) return value as Exclude<T, false | 0 | '' | null | undefined>;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) break;
    await sleep(pauseMs);
  }
  const seen = last instanceof Error ? last.message : JSON.stringify(last);
  throw new Error(`${options.what ?? 'the condition'} did not hold within ${timeoutMs} ms; last seen: ${seen}`, {
    cause: last instanceof Error ? last : undefined,
  });
}

/** A promise with its two ends, for tests that hold an answer back. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** The promise's value, or a rejection that names what was waited for. */
export async function within<T>(promise: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
