/**
 * Sends many messages through the fast path. Checks that latency and memory stay flat, and reports the state of the tables.
 *
 *     npm run bench:soak -- [--messages N]
 *
 * Exits with 1 when the p95 of the last thousand messages is more than 1.5 times that of the first thousand, or when the platform's
 * memory grows by more than 25 % after the first fifth of the messages.
 */
import { parseArgs } from 'node:util';
import { Caller } from './harness/caller.mjs';
import { CpuMeter, hasProc, residentMiB } from './harness/cpu.mjs';
import { Harness, joinAgents, serverPids } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine } from './harness/report.mjs';
import { indexHealth, tableHealth } from './soak/table-health.mjs';

const CALLERS = 16;
/** Uncounted messages at the start; at most as many as are measured. */
const WARM_UP_MAX = 2_000;
/** How many of the first and of the last messages are compared by p95. */
const SAMPLE = 1_000;
const POINTS = 10;
const P95_RATIO_MAX = 1.5;
const GROWTH_MAX = 1.25;
/** Memory is compared from this share of the messages on, when caches and pools have reached their size. */
const STEADY_SHARE = 0.2;

const { values: given } = parseArgs({ options: { messages: { type: 'string', default: '50000' } } });
const messages = Number(given.messages);
const print = (text) => process.stdout.write(`${text}\n`);

/**
 * Sends `count` messages from all callers.
 * @param onEach called after each message with the number of messages so far
 * @returns {Promise<Float64Array>} milliseconds of each, in the order in which they ended
 */
async function sendAll(send, count, onEach = () => undefined) {
  const times = new Float64Array(count);
  let begun = 0;
  let ended = 0;
  const caller = async () => {
    while (begun < count) {
      begun += 1;
      const from = performance.now();
      await send();
      times[ended] = performance.now() - from;
      ended += 1;
      onEach(ended);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return times;
}

const p95 = (times) => quantile([...times], 0.95);

/** Sends the messages and prints progress at every tenth. @returns the memory at each tenth, and the milliseconds of every message */
async function soak(send, platform) {
  const points = [];
  const every = Math.max(1, Math.floor(messages / POINTS));
  let from = performance.now();
  const times = await sendAll(send, messages, (ended) => {
    if (ended % every !== 0) return;
    const rate = (every * 1_000) / (performance.now() - from);
    from = performance.now();
    const point = { share: ended / messages, rssMiB: hasProc ? residentMiB(platform.pid) : null };
    points.push(point);
    print(`${ended} messages: ${rate.toFixed(0)}/s, resident ${point.rssMiB?.toFixed(0) ?? 'unknown'} MiB`);
  });
  return { points, times };
}

function printTenths(times) {
  const size = Math.max(1, Math.floor(times.length / POINTS));
  const tenths = Array.from({ length: POINTS }, (_, index) => p95(times.subarray(index * size, (index + 1) * size)));
  print(`p95 by tenths: ${tenths.map((ms) => ms.toFixed(1)).join(', ')} ms`);
}

/** @returns whether the p95 stayed within its limit */
function judgeTimes(times) {
  const sample = Math.min(SAMPLE, Math.floor(times.length / 2));
  const first = p95(times.subarray(0, sample));
  const last = p95(times.subarray(times.length - sample));
  const ratio = last / first;
  const ok = ratio <= P95_RATIO_MAX;
  print(
    `p95 of the first ${sample}: ${first.toFixed(1)} ms, of the last ${sample}: ${last.toFixed(1)} ms, ` +
      `ratio ${ratio.toFixed(2)} (at most ${P95_RATIO_MAX}): ${ok ? 'ok' : 'FAILED'}`,
  );
  return ok;
}

/** @returns whether memory stayed within its limit; true where the system does not report memory */
function judgeMemory(points) {
  const from = points.find(({ share }) => share >= STEADY_SHARE);
  const to = points.at(-1);
  if (!from?.rssMiB) return true;
  const growth = to.rssMiB / from.rssMiB;
  const ok = growth <= GROWTH_MAX;
  print(
    `resident: ${from.rssMiB.toFixed(0)} MiB at ${(from.share * 100).toFixed(0)} %, ${to.rssMiB.toFixed(0)} MiB at the end, ` +
      `ratio ${growth.toFixed(2)} (at most ${GROWTH_MAX}): ${ok ? 'ok' : 'FAILED'}`,
  );
  return ok;
}

async function run(harness) {
  print(machineLine());
  const platform = await harness.platform('fast-path', { FLEET_FAST_PATH: 'on' });
  await joinAgents(platform, await harness.agents(platform));
  const meter = new CpuMeter({ platform: platform.pid, ...serverPids(platform) });
  await meter.measureIdle(2_000);
  const send = new Caller(platform.dev.base_url, platform.token).send('echo');
  await sendAll(send, Math.min(WARM_UP_MAX, messages));
  await meter.settle();
  const { points, times } = await soak(send, platform);
  await meter.settle();
  print(`\n${await tableHealth(platform.dev.database_url)}\n\n${await indexHealth(platform.dev.database_url)}\n`);
  printTenths(times);
  const verdicts = [judgeTimes(times), judgeMemory(points)];
  return verdicts.every(Boolean) ? 0 : 1;
}

process.exitCode = await Harness.run(run);
