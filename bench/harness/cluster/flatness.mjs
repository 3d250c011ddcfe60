/** Whether what is sampled through a long run stays flat, by its means in the first and in the last quarter of the steady part. */

/** The steady part begins after this share of the run, when caches and pools have reached their size. */
const STEADY_SHARE = 0.2;
/** Limit on the mean of the last quarter, divided by that of the first. */
const GROWTH_MAX = 1.25;
/** Shorter runs are not judged. */
const MINUTES_MIN = 5;

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function quarters(samples, name) {
  const values = samples.slice(Math.floor(samples.length * STEADY_SHARE)).map((sample) => sample[name]);
  const size = Math.max(1, Math.floor(values.length / 4));
  return { first: mean(values.slice(0, size)), last: mean(values.slice(-size)) };
}

/**
 * @param {Record<string, number>[]} samples taken at equal intervals, all with the same names
 * @param {{ minutes: number, slack?: number }} options `slack`: growth up to this amount is flat too
 * @returns rows of a table, and violations; none for a run that is too short to be judged
 */
export function judgeFlatness(samples, { minutes, slack = 0 }) {
  const names = Object.keys(samples[0] ?? {});
  const compared = names.map((name) => ({ name, ...quarters(samples, name) }));
  const grown = compared.filter(({ first, last }) => last > first * GROWTH_MAX && last - first > slack);
  return {
    rows: compared.map(({ name, first, last }) => [
      `${name}, first quarter, last`,
      `${first.toFixed(0)}, ${last.toFixed(0)} (${(last / first).toFixed(2)} ×)`,
    ]),
    violations:
      minutes < MINUTES_MIN
        ? []
        : grown.map(({ name, first, last }) => `${name} grows from ${first.toFixed(0)} to ${last.toFixed(0)}`),
  };
}
