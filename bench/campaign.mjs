/**
 * Everything at once for a long time: quick, slow, streamed, canceled, asking and tool-calling messages of four tenants on three nodes, agents
 * that leave, come back and die, and a node that is killed every two minutes, while messages are erased, the secret key is rotated and an old
 * month is dropped. At the end compares what callers were told with the record, with
 * what agents did, with events, deliveries and usage, and looks for what is left or has grown (docs/performance.md).
 *
 *     npm run bench:campaign -- [--minutes 30] [--rate 5] [--kill-seconds 120]
 *
 * Exits with 0 only where nothing is violated. Memory and connections are judged in runs of five minutes or more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Fleet, LEAVING } from './campaign/fleet.mjs';
import { allRead, judgeEvents } from './campaign/judge/events.mjs';
import { judgeMessages } from './campaign/judge/messages.mjs';
import { judgeRest } from './campaign/judge/rest.mjs';
import { judgeUsage } from './campaign/judge/usage.mjs';
import { Receiver } from './campaign/receiver.mjs';
import { judgeSamples, sample } from './campaign/samples.mjs';
import { CampaignTenant } from './campaign/tenant.mjs';
import { RETENTION, Upkeep } from './campaign/upkeep.mjs';
import { Cluster, newSecretKey } from './harness/cluster/cluster.mjs';
import { Faults, MORTAL } from './harness/cluster/losses.mjs';
import { every, SteadyRate } from './harness/cluster/pace.mjs';
import { readRecord } from './harness/cluster/record.mjs';
import { withDatabase } from './harness/database.mjs';
import { Harness } from './harness/harness.mjs';
import { countBy, machineLine, print, printVerdict } from './harness/report.mjs';
import { createTenant } from './harness/tenants.mjs';

const NODES = 3;
const TENANTS = 4;
const AGENTS_KILLED_EVERY_MS = 45_000;
const AGENT_LEAVES_EVERY_MS = 5_000;
/** Messages that a line of the log names. */
const SHOWN_MAX = 10;
const LOGGED_EVERY_MS = 30_000;

const text = { type: 'string' };
const { values: given } = parseArgs({ options: { minutes: text, rate: text, 'kill-seconds': text } });
const minutes = Number(given.minutes ?? 30);
const runMs = minutes * 60_000;
const rate = Number(given.rate ?? 5);
/** A short run kills twice at least. */
const killEveryMs = Math.min(Number(given['kill-seconds'] ?? 120) * 1_000, runMs / 4);
const seconds = () => Math.round(performance.now() / 1_000);

async function startTenants(harness, cluster, receiver) {
  const platform = cluster.nodes[0].platform;
  const names = Array.from({ length: TENANTS - 1 }, (_, index) => `campaign ${index + 2}`);
  const env = { FLEET_SECRET_KEY: cluster.secretKey };
  const credentials = [cluster.dev, ...(await Promise.all(names.map((name) => createTenant(platform, name, env))))];
  const tenants = credentials.map(
    ({ tenant_id, ...credential }) => new CampaignTenant({ tenant_id, access: cluster.accessOf(credential), receiver }),
  );
  for (const tenant of tenants) harness.onStop(() => tenant.close());
  await Promise.all(tenants.map((tenant) => tenant.prepare()));
  return tenants;
}

/** On each node a steady agent, one that leaves, a mortal one and one with the tools; a hosted one. */
function instancesOf({ id: tenant, access }) {
  const on = (node, type, name) => ({ access: access[node], node, tenant, type, instanceId: `${name}${node}` });
  return [
    ...[...access.keys()].flatMap((node) => [
      on(node, 'worker', 'steady-'),
      on(node, 'worker', LEAVING),
      on(node, 'worker', MORTAL),
      on(node, 'tools', 'tools-'),
    ]),
    on(0, 'hosted', 'hosted-'),
  ];
}

/**
 * Kills nodes and agents until the signal aborts: the first node once, so that its memory can be judged from then on, then the others in turn.
 * @returns how many nodes were killed
 */
async function injectFaults(cluster, fleet, signal) {
  let killed = 0;
  let firstWasKilled = false;
  await Promise.all([
    every(killEveryMs, signal, async () => {
      fleet.readJournal();
      const isKilled = firstWasKilled ? await cluster.restartNext('kill') : await cluster.restartFirst();
      if (!isKilled) return;
      firstWasKilled = true;
      killed += 1;
    }),
    every(Math.min(AGENTS_KILLED_EVERY_MS, killEveryMs * 0.8), signal, () => fleet.killMortals()),
    every(AGENT_LEAVES_EVERY_MS, signal, () => fleet.leaveAndReturn()),
  ]);
  return killed;
}

/** Logs every half minute what has not ended, so that a run that hangs tells why. @returns ends it */
function logWaits(parts, tenants) {
  const left = new Set(Object.keys(parts));
  const ended = Object.entries(parts).map(([name, part]) => part.finally(() => left.delete(name)));
  void Promise.allSettled(ended); // whoever awaits the work gets what failed
  const timer = setInterval(() => {
    const messages = tenants.flatMap(({ underWay }) => [...underWay]);
    print(`${seconds()} s: waits for ${[...left].join(', ')}; messages: ${messages.slice(0, SHOWN_MAX).join('; ')}`);
  }, LOGGED_EVERY_MS);
  return () => clearInterval(timer);
}

async function run(harness) {
  print(machineLine());
  const nextKey = newSecretKey();
  const settings = { OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8', FLEET_PREVIOUS_SECRET_KEY: nextKey, ...RETENTION };
  const cluster = await Cluster.start(harness, NODES, settings);
  const receiver = await Receiver.start(harness);
  const tenants = await startTenants(harness, cluster, receiver);
  const fleet = await Fleet.start(harness, cluster, tenants.flatMap(instancesOf));
  print(`${NODES} nodes, ${TENANTS} tenants and their agents are there after ${seconds()} s`);
  const upkeep = new Upkeep(cluster, tenants, nextKey);
  await upkeep.addOldMonth();
  await Promise.all(tenants.map((tenant) => tenant.warmUp()));
  const running = new AbortController();
  const load = new SteadyRate();
  const samples = sample({ cluster, fleet, load, runMs, signal: running.signal });
  const faults = injectFaults(cluster, fleet, running.signal);
  const kept = upkeep.run(runMs, running.signal);
  const endsAtMs = performance.now() + runMs;
  const messages = load.run(rate, endsAtMs, (index) => tenants[index % tenants.length].sendOne(`n${index}`));
  const work = Promise.all([faults, samples, messages, kept]);
  await Promise.race([work, delay(runMs)]); // what fails ends the run at once
  running.abort();
  const endLog = logWaits({ faults, samples, messages, upkeep: kept }, tenants);
  const [killed] = await work.finally(endLog);
  print(`all messages have ended for their callers after ${seconds()} s`);
  return report({ cluster, tenants, fleet, receiver, upkeep, killed, samples: await samples });
}

async function judge({ cluster, tenants, fleet, receiver, upkeep, samples }) {
  const { database_url: databaseUrl, temporal_address: temporalAddress } = cluster.dev;
  return withDatabase(databaseUrl, async (database) => {
    const left = await judgeRest(database, temporalAddress, {
      also: () => allRead(database, tenants),
      log: (line) => print(`${seconds()} s: ${line}`),
    });
    const journal = fleet.readJournal();
    const faults = Object.assign(new Faults(), { nodes: cluster.killed, agents: fleet.kills });
    const record = await readRecord(databaseUrl);
    const flat = judgeSamples(samples, minutes);
    const violations = [
      ...tenants.flatMap((tenant) => tenant.violations),
      ...left,
      ...judgeMessages(record, tenants, journal, faults, upkeep.erased.messages),
      ...(await judgeEvents(database, tenants, receiver, record, upkeep.erased)),
      ...(await judgeUsage(tenants, record, journal, faults, [...upkeep.erased.messages.values()])),
      ...(await upkeep.judge(database)),
      ...flat.violations,
    ];
    return { record, journal, rows: flat.rows, violations };
  });
}

async function report(observed) {
  const { tenants, fleet, receiver, upkeep, killed } = observed;
  const { record, journal, rows, violations } = await judge(observed);
  print(`everything was at rest and judged after ${seconds()} s`);
  const sum = (of) => tenants.reduce((total, tenant) => total + of(tenant), 0);
  const table = [
    ['messages sent', sum(({ sent }) => sent)],
    ...countBy(record.map(({ state, error_code }) => (error_code ? `${state}, ${error_code}` : state))),
    ['tool calls', [...journal.toolCalls.values()].reduce((total, count) => total + count, 0)],
    [
      'nodes killed; agent processes killed; agents that left and came back',
      `${killed}; ${fleet.kills.length}; ${fleet.leaves.length}`,
    ],
    [
      'events read by followers, over connections',
      `${sum(({ follower }) => follower.ids.length)}, ${sum(({ follower }) => follower.breaks + 1)}`,
    ],
    ['messages erased; rotations of the secret key', `${upkeep.erased.messages.size}; ${upkeep.rotations}`],
    ['events delivered; messages with push notifications', `${receiver.alerts.size}; ${receiver.pushes.size}`],
    ...rows,
  ];
  for (const command of upkeep.repeated) print(`repeated: ${command}`);
  return printVerdict(table, violations);
}

process.exitCode = await Harness.run(run);
