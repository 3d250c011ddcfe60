/** Latency and throughput measurements. They run in the process that makes the calls. */

/**
 * The value below which the share `q` of `values` lies.
 * @param {number[]} values
 * @param {number} q 0 to 1
 */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

/** Uncounted calls before a sequence, so that the previous row does not affect the result. */
const LEAD_CALLS = 50;
/** Lower bound on the counted calls when `maxMs` cuts a sequence short. */
const CALLS_MIN = 20;

/**
 * Calls in sequence: some uncounted ones, then `calls` of them, or as many as start within `maxMs`.
 * @param {() => Promise<number | undefined>} work one call; resolves with milliseconds when only part of the call counts
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
 * `width` concurrent callers. Only calls that end between `rampMs` and `rampMs + ms` count towards the rate, which excludes ramp-up and
 * ramp-down; `total` is the number of all calls.
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
      failed = true; // the other callers stop after their current call
      throw error;
    }
  };
  await Promise.all(Array.from({ length: width }, guarded));
  return { perSecond: (counted * 1_000) / ms, total };
}

/**
 * Both measurements of one kind of call, as commands of a child process.
 * @param {() => Promise<number | undefined>} work
 */
export function measured(work) {
  return {
    sequential: (options) => sequential(work, options),
    throughput: (options) => throughput(work, options),
  };
}
