/**
 * A busy fleet: what agents get done that take one message at a time, beside what they could do and beside graphile-worker in the same run, and how
 * the fleet comes through an agent that leaves and one that is broken (docs/performance.md).
 *
 *     npm run bench:fleet -- [--rows NAME,NAME] [--seconds 10] [--connected]
 *
 * Agents are hosted unless `--connected` is given.
 */
import { parseArgs } from 'node:util';
import { away, broken } from './fleet/incidents.mjs';
import { BUSY_ROWS, measureBusy, startAgents, startCallers } from './fleet/rows.mjs';
import { CpuMeter } from './harness/cpu.mjs';
import { Harness, serverPids } from './harness/harness.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

const IDLE_MS = 2_000;
const INCIDENTS = { away, broken };
const ALL = [...Object.keys(BUSY_ROWS), ...Object.keys(INCIDENTS)];
const COLUMNS = ['row', 'possible /s', 'done /s', 'share', 'p50 ms', 'p99 ms', 'CPU ms', 'CPU ms by process', 'failed'];

const { values: given } = parseArgs({
  options: {
    rows: { type: 'string', default: ALL.join(',') },
    seconds: { type: 'string', default: '10' },
    connected: { type: 'boolean', default: false },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const whole = (ms) => ms?.toFixed(0) ?? '';

/** The names that were asked for. @throws Error for one that does not exist */
function chosenRows() {
  const names = given.rows.split(',');
  const unknown = names.filter((name) => !ALL.includes(name));
  if (unknown.length > 0) throw new Error(`no row ${unknown.join(', ')}; there are ${ALL.join(', ')}`);
  return names;
}

function cellsOf(name, { possible, perSecond, p50Ms, p99Ms, cpu, problems }) {
  const total = cpu.reduce((sum, [, ms]) => sum + ms, 0).toFixed(1);
  const byProcess = cpu.map(([process, ms]) => `${process} ${ms.toFixed(1)}`).join(', ');
  const share = (perSecond / possible).toFixed(2);
  const figures = [possible.toFixed(1), perSecond.toFixed(1), share, whole(p50Ms), whole(p99Ms)];
  return [`\`${name}\``, ...figures, cpu.length === 0 ? '' : total, byProcess, problems.length];
}

/** Code that has not been compiled yet would be measured as slow; agents without a limit make the most messages of the time. */
async function warmUp(context) {
  progress('warming up');
  const agents = await startAgents(context, { type: 'warm-up', count: 1, workMs: 0, maxConcurrentSessions: 0 });
  const callers = await startCallers(context, 'warm-up');
  await callers.ask('closedLoop', { width: 16, spreadMs: 0, rampMs: 0, ms: context.ms });
  await callers.stop();
  await agents.stop();
}

async function bench(harness) {
  const machine = machineLine();
  const names = chosenRows();
  progress('starting a platform');
  const platform = await harness.platform('fleet', {});
  const meter = new CpuMeter({ platform: platform.pid, ...serverPids(platform) });
  await meter.measureIdle(IDLE_MS);
  const context = { harness, platform, meter, hosted: !given.connected, ms: Number(given.seconds) * 1_000 };
  await warmUp(context);
  const table = [];
  const reports = [];
  for (const name of names) {
    await meter.settle();
    progress(name);
    if (name in INCIDENTS) reports.push(`\`${name}\`: ${(await INCIDENTS[name](context)).join('\n')}`);
    else {
      const result = await measureBusy(context, name);
      table.push(cellsOf(name, result));
      if (result.problems.length > 0) progress(`${name}, a failure: ${result.problems[0]}`);
    }
  }
  const agents = given.connected ? 'connected agents' : 'hosted agents';
  print(
    [`${machine}, ${agents}`, ...(table.length > 0 ? [markdownTable(COLUMNS, table)] : []), ...reports].join('\n\n'),
  );
  return 0;
}

process.exitCode = await Harness.run(bench);
