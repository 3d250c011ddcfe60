/** The rows of `npm run bench:send`: what each row calls, and which processes serve it. */

import { Caller } from '../harness/caller.mjs';
import { dispatchOf, PARTS } from '../harness/frames.mjs';
import { createDatabase, createNamespaces, joinAgents, serverPids } from '../harness/harness.mjs';
import { measured } from '../harness/measure.mjs';
import { POOL_MAX } from '../harness/platform.mjs';
import { agentSocket } from './agent-socket.mjs';

/**
 * The size of one round: `calls` in sequence within `maxMs`, then `ms` at 16 and at 64 callers. Each row is warmed up once for `warmMs`,
 * and for `leadMs` in every round, because processes cool down while other rows run. All rounds of one `phase` end before the next phase
 * starts, so that a ratio compares rows measured at about the same time.
 */
const QUICK = { phase: 'quick', calls: 300, maxMs: 3_000, rampMs: 300, ms: 1_600, warmMs: 20_000, leadMs: 1_500 };
const SLOW = { phase: 'slow', calls: 50, maxMs: 4_000, rampMs: 1_000, ms: 3_000, warmMs: 5_000, leadMs: 0 };
/** For the agent on its own, which warms up quickly. */
const AGENT = { ...QUICK, warmMs: 2_000 };

const NAMESPACES = { workflowPath: 'fleet-workflow-path', floor: 'fleet-floor' };

/** A second platform with the fast path off, on the servers of the first, with its own database and namespace. */
async function workflowPathPlatform(harness, { database_url, temporal_address }) {
  return harness.platform('workflow-path', {
    FLEET_FAST_PATH: 'off',
    DATABASE_URL: await createDatabase(database_url, 'fleet_workflow_path'),
    TEMPORAL_ADDRESS: temporal_address,
    TEMPORAL_NAMESPACE: NAMESPACES.workflowPath,
  });
}

async function startFloors(harness, { dev, ca }, agents) {
  const floor = await harness.child('send/floor.mjs', {
    databaseUrl: await createDatabase(dev.database_url, 'floor'),
    poolMax: POOL_MAX,
    connected: { url: agents.connected.ready.url, ca },
    hostedUrl: agents.hosted.ready.url,
  });
  const temporalFloor = await harness.child('send/temporal-floor.mjs', {
    databaseUrl: await createDatabase(dev.database_url, 'temporal_floor'),
    poolMax: POOL_MAX,
    temporalAddress: dev.temporal_address,
    namespace: NAMESPACES.floor,
  });
  return { floor, temporalFloor };
}

/** Measurements that a child process makes. */
const measuredIn = (child) => ({
  sequential: (options) => child.ask('sequential', options),
  throughput: (options) => child.ask('throughput', options),
});

/**
 * Starts everything that the rows need. All use the embedded Postgres, Temporal and certificate of the first platform.
 * @param {import('../harness/harness.mjs').Harness} harness
 * @returns the rows in the order of a round, and the process ids by name
 */
export async function setUp(harness) {
  const fastPath = await harness.platform('fast-path', { FLEET_FAST_PATH: 'on' });
  await createNamespaces(fastPath.dev.temporal_address, Object.values(NAMESPACES));
  const workflowPath = await workflowPathPlatform(harness, fastPath.dev);
  const agents = await harness.agents(fastPath);
  await joinAgents(fastPath, agents);
  await joinAgents(workflowPath, agents);
  const { floor, temporalFloor } = await startFloors(harness, fastPath, agents);
  const exchange = await agentSocket({ url: agents.connected.ready.url, ca: fastPath.ca });
  // The names of the rows and of the CPU columns (docs/performance.md): `short` is the fast path, `long` the workflow path.
  const pids = {
    caller: process.pid,
    short: fastPath.pid,
    long: workflowPath.pid,
    floor: floor.pid,
    bare: temporalFloor.pid,
    connected: agents.connected.pid,
    hosted: agents.hosted.pid,
    ...serverPids(fastPath),
  };
  const callers = {
    agent: new Caller(agents.hosted.ready.url),
    floor: new Caller(floor.ready.url),
    fastPath: new Caller(fastPath.dev.base_url, fastPath.token),
    workflowPath: new Caller(workflowPath.dev.base_url, workflowPath.token),
  };
  return { rows: createRows({ exchange, callers, floor, temporalFloor }), pids };
}

const POLICIES = 100;

/** None of them applies to what the rows send, so that each message is compared with all of them. */
const policy = (n) => ({
  scope: n % 2 === 0 ? 'admission' : 'dispatch',
  name: `policy ${n}`,
  decision: 'deny',
  match: { agent_types: [`type-${n}`, 'other-*'], skills: [`skill-${n}`] },
});

const AFTER_CREATION = { width: 16, rampMs: 0, ms: 2_000 };

/**
 * A row's measurements, with policies in force only while they run: the other rows share the tenant. Creating and deleting them is in the
 * row's CPU time, and not in its latencies and rates; what follows from creating them is over after the warm-up.
 */
function withPolicies(caller, { sequential, throughput }) {
  const between = async (work) => {
    const made = [];
    for (let n = 0; n < POLICIES; n += 1) made.push(await caller.post('/policies/create_policy', policy(n)));
    try {
      await throughput(AFTER_CREATION);
      return await work();
    } finally {
      for (const { policy } of made) await caller.post('/policies/delete_policy', { policy_id: policy.policy_id });
    }
  };
  return {
    sequential: (options) => between(() => sequential(options)),
    throughput: (options) => between(() => throughput(options)),
  };
}

/** @param processes that serve the row, beside the caller */
const row = (name, pace, processes, measurements) => ({ name, pace, processes, ...measurements });

function createRows({ exchange, callers, floor, temporalFloor }) {
  const direct = async () => void (await exchange(dispatchOf('direct', PARTS)));
  const fastPath = ['short', 'postgres', 'temporal'];
  const workflowPath = ['long', 'postgres', 'temporal'];
  return [
    row('agent_connected', AGENT, ['connected'], measured(direct)),
    row('agent_hosted', AGENT, ['hosted'], measured(callers.agent.sendToAgent())),
    row('floor_without_http', QUICK, ['floor', 'connected', 'postgres'], measuredIn(floor)),
    row('floor', QUICK, ['floor', 'connected', 'postgres'], measured(callers.floor.send('echo'))),
    row('send_short', QUICK, [...fastPath, 'connected'], measured(callers.fastPath.send('echo'))),
    row(
      'send_short_policies',
      QUICK,
      [...fastPath, 'connected'],
      withPolicies(callers.fastPath, measured(callers.fastPath.send('echo'))),
    ),
    row('stream_short', QUICK, [...fastPath, 'connected'], measured(callers.fastPath.stream('echo'))),
    row('floor_hosted', QUICK, ['floor', 'hosted', 'postgres'], measured(callers.floor.send('echo', '/send-hosted'))),
    row('send_short_hosted', QUICK, [...fastPath, 'hosted'], measured(callers.fastPath.send('echo-hosted'))),
    row('floor_temporal', SLOW, ['bare', 'postgres', 'temporal'], measuredIn(temporalFloor)),
    row('send_long', SLOW, [...workflowPath, 'connected'], measured(callers.workflowPath.send('echo'))),
    row('send_long_hosted', SLOW, [...workflowPath, 'hosted'], measured(callers.workflowPath.send('echo-hosted'))),
  ];
}
