/** The report of `npm run bench:send`: medians over the rounds, and ratios to the floors of the same run. */
import { quantile } from '../harness/measure.mjs';
import { markdownTable } from '../harness/report.mjs';

/** The ratios and their goals: a latency may be at most, a rate must be at least the goal. */
const RATIOS = {
  short_p50: { of: ['send_short', 'floor', 'p50_ms'], goal: 1.5 },
  short_rps_16: { of: ['send_short', 'floor', 'rps_16'], goal: 0.6 },
  short_rps_64: { of: ['send_short', 'floor', 'rps_64'], goal: 0.6 },
  policies_p50: { of: ['send_short_policies', 'send_short', 'p50_ms'], goal: 1.05 },
  policies_rps_16: { of: ['send_short_policies', 'send_short', 'rps_16'], goal: 0.95 },
  hosted_p50: { of: ['send_short_hosted', 'floor_hosted', 'p50_ms'], goal: 1.5 },
  hosted_rps_16: { of: ['send_short_hosted', 'floor_hosted', 'rps_16'], goal: 0.6 },
  long_p50: { of: ['send_long', 'floor_temporal', 'p50_ms'], goal: 1.25 },
  long_rps_16: { of: ['send_long', 'floor_temporal', 'rps_16'], goal: 0.8 },
  first_event: { of: ['stream_short', 'floor', 'p50_ms'], goal: 1.5 },
};

const round = (value, digits) => (value === null ? null : Number(value.toFixed(digits)));
const median = (values) => quantile(values, 0.5);

/** CPU milliseconds of one message, by process: medians over the rounds. */
function cpuSplit(rounds) {
  const names = Object.keys(rounds[0].cpu);
  return Object.fromEntries(names.map((name) => [name, median(rounds.map(({ cpu }) => cpu[name]))]));
}

/** Figures of one row, from its rounds. `cpu_ms` is the sum without the caller; null where the system does not report CPU time. */
export function summarize(name, rounds) {
  const split = cpuSplit(rounds);
  const serving = Object.entries(split).filter(([process]) => process !== 'caller');
  const cpuMs = serving.length === 0 ? null : serving.reduce((sum, [, used]) => sum + used, 0);
  const row = {
    name,
    p50_ms: round(median(rounds.map(({ p50Ms }) => p50Ms)), 2),
    p95_ms: round(median(rounds.map(({ p95Ms }) => p95Ms)), 2),
    rps_16: round(median(rounds.map(({ rps16 }) => rps16)), 1),
    rps_64: round(median(rounds.map(({ rps64 }) => rps64)), 1),
    cpu_ms: round(cpuMs, 2),
  };
  return { row, split };
}

/** The value of each ratio, ours divided by the floor's; null when a row was not measured. */
export function ratiosOf(rows) {
  const figure = (name, field) => rows.find((row) => row.name === name)?.[field];
  return Object.fromEntries(
    Object.entries(RATIOS).map(([name, { of }]) => {
      const [ours, floor, field] = of;
      const ratio = figure(ours, field) / figure(floor, field);
      return [name, Number.isFinite(ratio) ? round(ratio, 2) : null];
    }),
  );
}

function splitText(split) {
  return Object.entries(split)
    .map(([name, used]) => `${name} ${used.toFixed(2)}`)
    .join(', ');
}

/** The rows as a Markdown table. */
export function rowTable(summaries) {
  const lines = summaries.map(({ row, split }) => {
    const { name, p50_ms, p95_ms, rps_16, rps_64, cpu_ms } = row;
    const rates = [rps_16.toFixed(0), rps_64.toFixed(0)];
    return [`\`${name}\``, p50_ms.toFixed(2), p95_ms.toFixed(2), ...rates, cpu_ms ?? '', splitText(split)];
  });
  const columns = ['row', 'p50 ms', 'p95 ms', '16 callers /s', '64 callers /s', 'CPU ms', 'CPU ms by process'];
  return markdownTable(columns, lines);
}

function isMet(field, ratio, goal) {
  return field === 'p50_ms' ? ratio <= goal : ratio >= goal;
}

/** The ratios and their goals as a Markdown table. */
export function ratioTable(ratios) {
  const lines = Object.entries(RATIOS)
    .filter(([name]) => ratios[name] !== null)
    .map(([name, { of, goal }]) => {
      const [ours, floor, field] = of;
      const bound = `${field === 'p50_ms' ? '≤' : '≥'} ${goal}`;
      const verdict = isMet(field, ratios[name], goal) ? 'met' : 'missed';
      return [`\`${name}\``, `${ours} / ${floor}`, ratios[name].toFixed(2), bound, verdict];
    });
  return markdownTable(['ratio', 'of', 'is', 'goal', ''], lines);
}
