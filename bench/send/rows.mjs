/** The rows of `npm run bench:send`: what each row calls, and which processes serve it. */
import { Caller } from '../harness/caller.mjs';
import { createDatabase, createNamespace, joinAgents, serverPids } from '../harness/harness.mjs';
import { measured } from '../harness/measure.mjs';
import { POOL_MAX } from '../harness/platform.mjs';

/**
 * The size of one round: `calls` in sequence within `maxMs`, then `ms` at 16 and at 64 callers. Each row is warmed up once for `warmMs`,
 * and for `leadMs` in every round, because processes cool down while other rows run.
 */
const QUICK = { calls: 300, maxMs: 3_000, rampMs: 300, ms: 1_600, warmMs: 20_000, leadMs: 1_500 };
const SLOW = { calls: 50, maxMs: 4_000, rampMs: 1_000, ms: 3_000, warmMs: 5_000, leadMs: 0 };

const NAMESPACE = 'fleet-workflow-path';

/** A second platform with the fast path off, on the servers of the first, with its own database and namespace. */
async function workflowPathPlatform(harness, { database_url, temporal_address }) {
  await createNamespace(temporal_address, NAMESPACE);
  return harness.platform('workflow-path', {
    FLEET_FAST_PATH: 'off',
    DATABASE_URL: await createDatabase(database_url, 'fleet_workflow_path'),
    TEMPORAL_ADDRESS: temporal_address,
    TEMPORAL_NAMESPACE: NAMESPACE,
  });
}

/**
 * Starts everything that the rows need. All use the embedded Postgres, Temporal and certificate of the first platform.
 * @param {import('../harness/harness.mjs').Harness} harness
 * @returns the rows in the order of a round, and the process ids by name
 */
export async function setUp(harness) {
  const fastPath = await harness.platform('fast-path', { FLEET_FAST_PATH: 'on' });
  const workflowPath = await workflowPathPlatform(harness, fastPath.dev);
  const agents = await harness.agents(fastPath);
  await joinAgents(fastPath, agents);
  await joinAgents(workflowPath, agents);
  const floor = await harness.child('send/floor.mjs', {
    databaseUrl: await createDatabase(fastPath.dev.database_url, 'floor'),
    poolMax: POOL_MAX,
    agent: { url: agents.connected.ready.url, ca: fastPath.ca },
  });
  // The names of the rows and of the CPU columns (docs/performance.md): `short` is the fast path, `long` the workflow path.
  const pids = {
    caller: process.pid,
    short: fastPath.pid,
    long: workflowPath.pid,
    floor: floor.pid,
    connected: agents.connected.pid,
    hosted: agents.hosted.pid,
    ...serverPids(fastPath),
  };
  const callers = {
    floor: new Caller(floor.ready.url),
    short: new Caller(fastPath.dev.base_url, fastPath.token),
    long: new Caller(workflowPath.dev.base_url, workflowPath.token),
  };
  return { rows: createRows(callers), pids };
}

/** @param processes that serve the row, beside the caller */
const row = (name, pace, processes, work) => ({ name, pace, processes, ...measured(work) });

function createRows(callers) {
  const servers = ['postgres', 'temporal'];
  return [
    row('floor', QUICK, ['floor', 'connected', 'postgres'], callers.floor.send('echo')),
    row('send_short', QUICK, ['short', 'connected', ...servers], callers.short.send('echo')),
    row('stream_short', QUICK, ['short', 'connected', ...servers], callers.short.stream('echo')),
    row('send_short_hosted', QUICK, ['short', 'hosted', ...servers], callers.short.send('echo-hosted')),
    row('send_long', SLOW, ['long', 'connected', ...servers], callers.long.send('echo')),
  ];
}
