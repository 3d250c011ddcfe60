/** Rows of `npm run bench:fleet` in which all agents are busy: how many messages a second they get done, beside what they could do. */
import { setTimeout as delay } from 'node:timers/promises';
import { CpuMeter } from '../harness/cpu.mjs';
import { createDatabase, serverPids } from '../harness/harness.mjs';
import { quantile } from '../harness/measure.mjs';
import { queued, queues, tenant, transaction } from './beside.mjs';

const IDLE_MS = 2_000;
/** Before the counted time, beside two rounds of the agents' work. */
const RAMP_MS = 1_000;
/** Connections of callers that do not wait for each other; more are never in use at once. */
const STEADY_CONNECTIONS = 4_096;

const BUSY = { count: 8, workMs: 50, callers: 64, start: startFleet };
/** By name: `count` agents, or room for as many jobs, whose messages take `workMs`. What `beside` makes stays for the rows after it. */
export const BUSY_ROWS = {
  '8-callers': { ...BUSY, callers: 8 },
  '64-callers': BUSY,
  '256-callers': { ...BUSY, callers: 256 },
  'graphile-worker': { ...BUSY, start: startJobs },
  '50-agents': { count: 50, workMs: 500, callers: 200, start: startFleet },
  '300-agents': { count: 300, workMs: 3_000, callers: 300, start: startFleet },
  'beside-transaction': { ...BUSY, beside: transaction },
  'graphile-beside-transaction': { ...BUSY, start: startJobs, beside: transaction },
  'beside-queued': { ...BUSY, beside: queued },
  'beside-tenant': { ...BUSY, beside: tenant },
  'beside-queues': { ...BUSY, skills: 100, beside: queues },
};

/** Starts agents of the type `type`, as `agents.mjs` takes them. @returns their process */
export function startAgents({ harness, platform, agentsAt, hosted }, options) {
  const access = { url: agentsAt, token: platform.token, ca: platform.ca };
  return harness.child('fleet/agents.mjs', { access, hosted, ...options });
}

/** Starts callers of the agents of a type. @returns their process */
export function startCallers({ harness, platform }, agentType, connections = STEADY_CONNECTIONS) {
  const { token, dev } = platform;
  return harness.child('fleet/callers.mjs', { platform: { url: dev.base_url, token, agentType }, connections });
}

async function startFleet(context, name, { count, workMs, callers, skills }) {
  const type = `busy-${name}`;
  return {
    agents: await startAgents(context, { type, count, workMs, maxConcurrentSessions: 1, skills }),
    callers: await startCallers(context, type, callers),
    meter: context.meter,
    databaseUrl: context.platform.dev.database_url,
  };
}

async function startJobs({ harness, platform }, name, { count, workMs }) {
  const jobsUrl = await createDatabase(platform.dev.database_url, name.replaceAll('-', '_'));
  const agents = await harness.child('fleet/job-worker.mjs', { jobsUrl, count, workMs });
  const { postgres } = serverPids(platform);
  return {
    agents,
    callers: await harness.child('fleet/callers.mjs', { jobsUrl }),
    meter: new CpuMeter({ worker: agents.pid, postgres }),
    databaseUrl: jobsUrl,
  };
}

/** Calls that ended well: how many in the counted time, and how long those took that began in it. */
function figuresOf({ calls, fromMs }, ms) {
  const isCounted = (atMs) => atMs >= fromMs && atMs < fromMs + ms;
  const done = calls.filter(({ problem }) => problem === undefined);
  const times = done
    .filter(({ startedAtMs }) => isCounted(startedAtMs))
    .map((call) => call.endedAtMs - call.startedAtMs);
  return {
    perSecond: (done.filter(({ endedAtMs }) => isCounted(endedAtMs)).length * 1_000) / ms,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    problems: calls.flatMap(({ problem }) => problem ?? []),
  };
}

/**
 * CPU milliseconds of each process while `work` runs, with the work that follows the answers: afterwards what the idle processes use does not count.
 */
async function cpuOf(meter, work) {
  await meter.settle();
  const idle = meter.read();
  await delay(IDLE_MS);
  const before = meter.read();
  const result = await work();
  const endedAtMs = performance.now();
  await meter.settle();
  const idleTimes = (performance.now() - endedAtMs) / IDLE_MS;
  const cpu = Object.entries(meter.read()).map(([process, used]) => {
    const idleUse = (before[process] - idle[process]) * idleTimes;
    return [process, used - before[process] - idleUse];
  });
  return { result, cpu };
}

/**
 * Measures a row.
 * @param {{ harness: import('../harness/harness.mjs').Harness, platform: object, agentsAt: string, hosted: boolean, meter: CpuMeter, ms: number, warmUpMs: number }} context
 * @param {string} name of `BUSY_ROWS`
 * @returns what the agents could do and did, and the CPU milliseconds of a message by process
 */
export async function measureBusy(context, name) {
  const row = BUSY_ROWS[name];
  const { agents, callers, meter, databaseUrl } = await row.start(context, name, row);
  const end = await row.beside?.({ ...context, databaseUrl });
  const load = { width: row.callers, spreadMs: row.workMs, rampMs: RAMP_MS + 2 * row.workMs, ms: context.ms };
  await callers.ask('closedLoop', { ...load, ms: context.warmUpMs });
  await agents.ask('forget');
  const { result, cpu } = await cpuOf(meter, () => callers.ask('closedLoop', load));
  const possible = (row.count * 1_000) / (await agents.ask('handlingMs'));
  await callers.stop();
  await agents.stop();
  await end?.();
  const perMessage = cpu.map(([process, used]) => [process, used / result.calls.length]);
  return { possible, cpu: perMessage, ...figuresOf(result, context.ms) };
}
