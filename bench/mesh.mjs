/**
 * The mesh: chunks from an agent to many callers, and a thousand agents that lose their node (docs/performance.md).
 *
 *     npm run bench:mesh
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Caller } from './harness/caller.mjs';
import { Cluster } from './harness/cluster/cluster.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable, print, progress } from './harness/report.mjs';
import { Streams } from './mesh/streams.mjs';

/** Code that has not been compiled yet would be measured as slow. */
const WARM_UP_CALLS = 100;
const FIRST_CHUNKS = 300;
const STREAMS = 100;
const CHUNKS = 200;
const ROUNDS = 3;
const RECONNECTING = 1_000;
const PROBE_MS = 10;

const median = (values) => quantile(values, 0.5);

/** Connects agents `type-0`, … of a type to a node. @returns their process */
async function join({ harness, cluster, platform }, type, count, node) {
  for (let n = 0; n < count; n += 1)
    await platform.post('/agents/register', {
      ...{ agent_type: type, instance_id: `${type}-${n}`, max_concurrent_sessions: 0 },
    });
  const agents = await harness.child('mesh/agents.mjs');
  const headers = { authorization: `Bearer ${platform.token}` };
  await agents.ask('join', { url: node.direct.mesh, headers, ca: cluster.ca, prefix: type, count });
  return agents;
}

/** Chunks from one agent to many callers. */
async function streams(context) {
  const [first] = context.cluster.nodes;
  progress(`${STREAMS} streams`);
  await join(context, 'streamer', 1, first);
  const callers = new Streams(first.direct.api, context.platform.token, 'streamer');
  context.harness.onStop(() => callers.close());
  const times = [];
  for (let call = 0; call < WARM_UP_CALLS + FIRST_CHUNKS; call += 1) times.push(await callers.first());
  const measured = times.slice(WARM_UP_CALLS);
  await callers.many(STREAMS, CHUNKS);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await callers.many(STREAMS, CHUNKS));
  const lost = rounds.reduce((sum, round) => sum + round.lost, 0);
  return [
    ['first chunk, p50 ms', median(measured).toFixed(2)],
    ['first chunk, p95 ms', quantile(measured, 0.95).toFixed(2)],
    ['chunks a second', median(rounds.map(({ perSecond }) => perSecond)).toFixed(0)],
    ['chunks lost', lost],
  ];
}

/** Kills a node; its agents reconnect to the other one, which serves an agent of its own meanwhile. */
async function nodeLoss(context) {
  const [first, second] = context.cluster.nodes;
  progress(`${RECONNECTING} agents reconnect after their node is killed`);
  await join(context, 'resident', 1, first);
  const agents = await join(context, 'homeless', RECONNECTING, second);
  const caller = new Caller(first.direct.api, context.platform.token);
  context.harness.onStop(() => caller.close());
  const send = caller.send('resident');
  for (let call = 0; call < WARM_UP_CALLS; call += 1) await send();
  await agents.ask('reconnectTo', first.direct.mesh);
  const killedAtMs = performance.timeOrigin + performance.now();
  await second.platform.kill();
  const times = [];
  let back = await agents.ask('reconnected');
  while (back.count < RECONNECTING) {
    const from = performance.now();
    await send();
    times.push(performance.now() - from);
    await delay(PROBE_MS);
    back = await agents.ask('reconnected');
  }
  return [
    [`${RECONNECTING} agents are back, after s`, ((back.lastMs - killedAtMs) / 1_000).toFixed(1)],
    ['a message to another agent meanwhile, p50 ms', median(times).toFixed(1)],
    ['the same, p99 ms', quantile(times, 0.99).toFixed(1)],
  ];
}

async function bench(harness) {
  const machine = machineLine();
  progress('starting two nodes');
  const cluster = await Cluster.start(harness, 2);
  const context = { harness, cluster, platform: cluster.nodes[0].platform };
  const rows = [...(await streams(context)), ...(await nodeLoss(context))];
  print(`${machine}\n\n${markdownTable(['', ''], rows)}`);
  return 0;
}

process.exitCode = await Harness.run(bench);
