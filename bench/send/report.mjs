/** The report of `npm run bench:send`: medians over the rounds. */
import { quantile } from '../harness/measure.mjs';
import { markdownTable } from '../harness/report.mjs';

const median = (values) => quantile(values, 0.5);

/** CPU milliseconds of one message, by process: medians over the rounds. */
function cpuSplit(rounds) {
  const names = Object.keys(rounds[0].cpu);
  return names.map((name) => [name, median(rounds.map(({ cpu }) => cpu[name]))]);
}

/** The rows as a Markdown table. The CPU time is the sum without the caller; empty where the system does not report it. */
export function rowTable(rows, roundsByName) {
  const lines = rows.map(({ name }) => {
    const rounds = roundsByName.get(name);
    const of = (figure, digits) => median(rounds.map((round) => round[figure])).toFixed(digits);
    const split = cpuSplit(rounds);
    const serving = split.filter(([process]) => process !== 'caller').reduce((sum, [, used]) => sum + used, 0);
    const byProcess = split.map(([process, used]) => `${process} ${used.toFixed(2)}`).join(', ');
    const cpu = split.length === 0 ? '' : serving.toFixed(2);
    return [`\`${name}\``, of('p50Ms', 2), of('p95Ms', 2), of('rps16', 0), of('rps64', 0), cpu, byProcess];
  });
  const columns = ['row', 'p50 ms', 'p95 ms', '16 callers /s', '64 callers /s', 'CPU ms', 'CPU ms by process'];
  return markdownTable(columns, lines);
}
