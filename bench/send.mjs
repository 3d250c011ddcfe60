/**
 * The cost of `/send` beside its floor, measured in the same run on the same servers (docs/performance.md).
 *
 *     npm run bench:send -- [--rounds N]
 */
import { parseArgs } from 'node:util';
import { CpuMeter } from './harness/cpu.mjs';
import { Harness } from './harness/harness.mjs';
import { machineLine, print, progress } from './harness/report.mjs';
import { rowTable } from './send/report.mjs';
import { setUp } from './send/rows.mjs';

const IDLE_MS = 2_000;
/** The warm-up of a row; its duration is in the row's pace. Code that has not been compiled yet would be measured as slow. */
const WARM_UP = { width: 16, rampMs: 0 };

const { values: given } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });

/** CPU milliseconds per message, of the caller and of the processes that serve the row. */
function cpuPerMessage(row, before, after, total) {
  const names = ['caller', ...row.processes].filter((name) => name in after);
  return Object.fromEntries(names.map((name) => [name, (after[name] - before[name]) / total]));
}

/** Measures one round of a row. The CPU time includes the work that follows the answers. */
async function measureRow(row, meter) {
  const { calls, maxMs, rampMs, ms, leadMs } = row.pace;
  if (leadMs > 0) await row.throughput({ ...WARM_UP, ms: leadMs });
  await meter.settle();
  const latency = await row.sequential({ calls, maxMs });
  await meter.settle();
  const before = meter.read();
  const at16 = await row.throughput({ width: 16, rampMs, ms });
  await meter.settle();
  const cpu = cpuPerMessage(row, before, meter.read(), at16.total);
  const at64 = await row.throughput({ width: 64, rampMs, ms });
  await meter.settle();
  return { ...latency, rps16: at16.perSecond, rps64: at64.perSecond, cpu };
}

async function warmUp(rows, meter) {
  for (const row of rows) {
    progress(`warming up ${row.name}`);
    await row.throughput({ ...WARM_UP, ms: row.pace.warmMs });
    await meter.settle();
  }
}

/** @returns the rounds of each row, by name */
async function measureAll(rows, meter, count) {
  const rounds = new Map(rows.map(({ name }) => [name, []]));
  for (let round = 1; round <= count; round += 1) {
    for (const row of rows) {
      const result = await measureRow(row, meter);
      rounds.get(row.name).push(result);
      const { p50Ms, rps16, rps64 } = result;
      progress(
        `round ${round}/${count} ${row.name}: ${p50Ms.toFixed(2)} ms, ${rps16.toFixed(0)}/s, ${rps64.toFixed(0)}/s`,
      );
    }
  }
  return rounds;
}

async function bench(harness) {
  const machine = machineLine();
  progress('starting platforms, agents and the floor');
  const { rows, pids } = await setUp(harness);
  const meter = new CpuMeter(pids);
  await meter.measureIdle(IDLE_MS);
  await warmUp(rows, meter);
  const rounds = await measureAll(rows, meter, Number(given.rounds));
  print(`${machine}\n\n${rowTable(rows, rounds)}`);
  return 0;
}

process.exitCode = await Harness.run(bench);
