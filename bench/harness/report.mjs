/** What benchmarks print: the machine, tables, violations, and how far they are. */
import { cpus, loadavg, release, totalmem } from 'node:os';

const GIB = 1024 ** 3;
/** Violations that are shown of each kind. */
const SHOWN_MAX = 10;

export const print = (text) => process.stdout.write(`${text}\n`);
/** Tells how far a benchmark is, beside what it prints. */
export const progress = (text) => process.stderr.write(`[bench] ${text}\n`);

/** The machine, its load and the date, in one line. */
export function machineLine() {
  const processors = cpus();
  const memory = `${(totalmem() / GIB).toFixed(0)} GiB`;
  const system = `${process.platform} ${release()}, Node ${process.versions.node}`;
  const load = loadavg()[0].toFixed(2);
  const date = new Date().toISOString().slice(0, 10);
  return `${processors.length} × ${processors[0]?.model.trim()}, ${memory}, ${system}, load ${load} before, ${date}`;
}

const line = (cells) => `| ${cells.join(' | ')} |`;

/** A Markdown table; the first column is aligned left, the others right. */
export function markdownTable(columns, rows) {
  const rule = columns.map((_, index) => (index === 0 ? '---' : '---:'));
  return [columns, rule, ...rows].map(line).join('\n');
}

/** How often each value is there, the most frequent first. */
export function countBy(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

/** Prints what a long run found, and its violations. @returns the exit code */
export function printVerdict(table, violations) {
  print(`\n${markdownTable(['', ''], [...table, ['violations', violations.length]])}\n`);
  printByKind(violations);
  return violations.length === 0 ? 0 : 1;
}

/** Those that differ in nothing but ids and numbers are of one kind, of which a few are shown. */
function printByKind(violations) {
  const kinds = new Map();
  for (const violation of violations) {
    const kind = violation.replaceAll(/[a-z]+_[0-9a-f-]{36}|"[^"]*"|\{.*|\d+/g, '…');
    kinds.set(kind, [...(kinds.get(kind) ?? []), violation]);
  }
  for (const [kind, all] of kinds) {
    print(`${all.length} × ${kind}`);
    for (const violation of all.slice(0, SHOWN_MAX)) print(`  ${violation}`);
  }
}
