/** What a run of `npm run bench:send` says: medians over the rounds, ratios to the floors of the same run, the machine. */
import { cpus, loadavg, release, totalmem } from 'node:os';
import { quantile } from './measure.mjs';

const GIB = 1024 ** 3;

/** Goals of the ratios: at most for latency, at least for rates. */
const RATIOS = {
  short_p50: { of: ['send_short', 'floor', 'p50_ms'], goal: 1.5 },
  short_rps_16: { of: ['send_short', 'floor', 'rps_16'], goal: 0.6 },
  short_rps_64: { of: ['send_short', 'floor', 'rps_64'], goal: 0.6 },
  hosted_p50: { of: ['send_short_hosted', 'floor_hosted', 'p50_ms'], goal: 1.5 },
  hosted_rps_16: { of: ['send_short_hosted', 'floor_hosted', 'rps_16'], goal: 0.6 },
  long_p50: { of: ['send_long', 'floor_temporal', 'p50_ms'], goal: 1.25 },
  long_rps_16: { of: ['send_long', 'floor_temporal', 'rps_16'], goal: 0.8 },
  first_event: { of: ['stream_short', 'floor', 'p50_ms'], goal: 1.5 },
};

const round = (value, digits) => (value === null ? null : Number(value.toFixed(digits)));
const median = (values) => quantile(values, 0.5);

/** The machine and the moment, in one line. */
export function machineLine() {
  const processors = cpus();
  const memory = `${(totalmem() / GIB).toFixed(0)} GiB`;
  const system = `${process.platform} ${release()}, Node ${process.versions.node}`;
  const load = loadavg()[0].toFixed(2);
  const date = new Date().toISOString().slice(0, 10);
  return `${processors.length} × ${processors[0]?.model.trim()}, ${memory}, ${system}, load ${load} before, ${date}`;
}

/** CPU milliseconds of one message, by process: medians over the rounds. */
function cpuSplit(rounds) {
  const names = Object.keys(rounds[0].cpu);
  return Object.fromEntries(names.map((name) => [name, median(rounds.map(({ cpu }) => cpu[name]))]));
}

/** One row's figures out of its rounds. `cpu_ms` is the sum without the caller, null where the system does not tell. */
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

/** Ours over the floor's, for each ratio; null where a row was not measured. */
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

const line = (cells) => `| ${cells.join(' | ')} |`;

/** A Markdown table, the first column to the left and the others to the right. */
export function markdownTable(columns, rows) {
  const rule = columns.map((_, index) => (index === 0 ? '---' : '---:'));
  return [columns, rule, ...rows].map(line).join('\n');
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
