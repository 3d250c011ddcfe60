/** The machine line and the Markdown tables that every benchmark prints. */
import { cpus, loadavg, release, totalmem } from 'node:os';

const GIB = 1024 ** 3;

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
