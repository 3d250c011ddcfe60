/**
 * A busy fleet: what agents get done that take one message at a time, beside what they could do and beside graphile-worker in the same run, and how
 * the fleet comes through an agent that leaves and one that is broken (docs/performance.md).
 *
 *     npm run bench:fleet -- [--rows NAME,NAME] [--seconds 15] [--warm-up 40] [--connected] [--elsewhere]
 *
 * Agents are hosted unless `--connected` is given. With `--elsewhere` they are connected to another node than the callers', through the proxy of
 * the campaign: compare the CPU. Each busy row runs for the seconds of the warm-up before it is measured: a process in service has compiled its
 * code, which takes some thousand messages; in its first ten seconds it does three quarters as much.
 */
import { parseArgs } from 'node:util';
import { away, broken, restarts } from './fleet/incidents.mjs';
import { BUSY_ROWS, measureBusy } from './fleet/rows.mjs';
import { Cluster } from './harness/cluster/cluster.mjs';
import { CpuMeter } from './harness/cpu.mjs';
import { Harness, serverPids } from './harness/harness.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

const IDLE_MS = 2_000;
const INCIDENTS = { away, broken, restarts };
const ALL = [...Object.keys(BUSY_ROWS), ...Object.keys(INCIDENTS)];
const COLUMNS = ['row', 'possible /s', 'done /s', 'share', 'p50 ms', 'p99 ms', 'CPU ms', 'CPU ms by process', 'failed'];

const { values: given } = parseArgs({
  options: {
    rows: { type: 'string', default: ALL.join(',') },
    seconds: { type: 'string', default: '15' },
    'warm-up': { type: 'string', default: '40' },
    connected: { type: 'boolean', default: false },
    elsewhere: { type: 'boolean', default: false },
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

/** @returns the platform of the callers, where agents join it, and the processes that are measured */
async function startPlatform(harness) {
  if (!given.elsewhere) {
    const platform = await harness.platform('fleet', {});
    return { platform, agentsAt: platform.dev.base_url, pids: { platform: platform.pid, ...serverPids(platform) } };
  }
  const { nodes } = await Cluster.start(harness, 2);
  const [{ platform, direct }, other] = nodes;
  platform.dev.base_url = direct.api;
  const pids = { platform: platform.pid, other: other.platform.pid, ...serverPids(platform) };
  return { platform, agentsAt: other.url, pids };
}

async function bench(harness) {
  const machine = machineLine();
  const names = chosenRows();
  progress('starting a platform');
  const { platform, agentsAt, pids } = await startPlatform(harness);
  const meter = new CpuMeter(pids);
  await meter.measureIdle(IDLE_MS);
  const [ms, warmUpMs] = [given.seconds, given['warm-up']].map((seconds) => Number(seconds) * 1_000);
  const hosted = !given.connected && !given.elsewhere;
  const context = { harness, platform, agentsAt, meter, hosted, ms, warmUpMs };
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
  const agents = hosted ? 'hosted agents' : `connected agents${given.elsewhere ? ' at another node' : ''}`;
  print(
    [`${machine}, ${agents}`, ...(table.length > 0 ? [markdownTable(COLUMNS, table)] : []), ...reports].join('\n\n'),
  );
  return 0;
}

process.exitCode = await Harness.run(bench);
