/** How work is measured: one call after the other, and many at once. Whoever holds the caller's side runs these, in whichever process. */

/**
 * The value below which the share `q` of `values` lies.
 * @param {number[]} values
 * @param {number} q 0 to 1
 */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

/** Calls ahead of those in a row that count: which row was measured before must not show. */
const LEAD_CALLS = 50;
/** Where calls are slow there are fewer of them, but so many at least. */
const CALLS_MIN = 20;

/**
 * Calls one after the other: some that do not count, then `calls` of them, or as many as begin within `maxMs`.
 * @param {() => Promise<number | undefined>} work one call; gives its milliseconds where not the whole call counts
 * @param {{ calls: number, maxMs: number }} options
 * @returns {Promise<{ p50Ms: number, p95Ms: number }>}
 */
async function sequential(work, { calls, maxMs }) {
  const times = [];
  for (let call = 0; call < Math.min(LEAD_CALLS, calls / 4); call += 1) await work();
  const until = performance.now() + maxMs;
  while (times.length < calls && (times.length < CALLS_MIN || performance.now() < until)) {
    const from = performance.now();
    const own = await work();
    times.push(own ?? performance.now() - from);
  }
  return { p50Ms: quantile(times, 0.5), p95Ms: quantile(times, 0.95) };
}

/**
 * `width` callers, each with one call at a time. Only what ends between `rampMs` and `rampMs + ms` counts towards the rate, so that
 * neither the filling nor the emptying of the pipe does; `total` is all that was done.
 * @param {() => Promise<unknown>} work
 * @param {{ width: number, rampMs: number, ms: number }} options
 * @returns {Promise<{ perSecond: number, total: number }>}
 */
async function throughput(work, { width, rampMs, ms }) {
  const from = performance.now() + rampMs;
  const to = from + ms;
  let total = 0;
  let counted = 0;
  let failed = false;
  const caller = async () => {
    while (!failed && performance.now() < to) {
      await work();
      const now = performance.now();
      total += 1;
      if (now >= from && now < to) counted += 1;
    }
  };
  const guarded = async () => {
    try {
      await caller();
    } catch (error) {
      failed = true; // the others end after their call
      throw error;
    }
  };
  await Promise.all(Array.from({ length: width }, guarded));
  return { perSecond: (counted * 1_000) / ms, total };
}

/**
 * Both measurements of one piece of work.
 * @param {() => Promise<number | undefined>} work
 */
export function measured(work) {
  return {
    sequential: (options) => sequential(work, options),
    throughput: (options) => throughput(work, options),
  };
}
