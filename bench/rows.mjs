/** The rows of `npm run bench:send`: what is called, and which processes work for it. */
import { agentSocket } from './agent-socket.mjs';
import { Caller } from './callers.mjs';
import { dispatchOf, PARTS } from './frames.mjs';
import { createDatabase, createNamespaces, joinAgents, serverPids } from './harness.mjs';
import { measured } from './measure.mjs';
import { POOL_MAX } from './platform.mjs';

/**
 * How much of a row is one round of it: calls in a row, in so many milliseconds at most; then milliseconds at 16 and at 64 callers. A row is
 * warmed up once, and for `leadMs` in each round: processes that rest while other rows are measured are cold again. The rounds of
 * one `phase` are over before the next one begins, so that ratios are of rows that were measured close together.
 */
const QUICK = { phase: 'quick', calls: 300, maxMs: 3_000, rampMs: 300, ms: 1_600, warmMs: 20_000, leadMs: 1_500 };
const SLOW = { phase: 'slow', calls: 50, maxMs: 4_000, rampMs: 1_000, ms: 3_000, warmMs: 5_000, leadMs: 0 };
/** An agent alone, which is quick to warm up. */
const AGENT = { ...QUICK, warmMs: 2_000 };

const NAMESPACES = { long: 'fleet-long', bare: 'fleet-bare' };

/** The workflow path: a second platform on the first one's servers, with its own database and namespace. */
async function longPlatform(harness, { database_url, temporal_address }) {
  return harness.platform('long', {
    FLEET_FAST_PATH: 'off',
    DATABASE_URL: await createDatabase(database_url, 'fleet_long'),
    TEMPORAL_ADDRESS: temporal_address,
    TEMPORAL_NAMESPACE: NAMESPACES.long,
  });
}

async function floors(harness, { dev, ca }, agents) {
  const floor = await harness.child('floor.mjs', {
    databaseUrl: await createDatabase(dev.database_url, 'floor'),
    poolMax: POOL_MAX,
    connected: { url: agents.connected.ready.url, ca },
    hostedUrl: agents.hosted.ready.url,
  });
  const bare = await harness.child('temporal-floor.mjs', {
    databaseUrl: await createDatabase(dev.database_url, 'bare'),
    poolMax: POOL_MAX,
    temporalAddress: dev.temporal_address,
    namespace: NAMESPACES.bare,
  });
  return { floor, bare };
}

/** Work that is called in a process of its own. */
const within = (child) => ({
  sequential: (options) => child.ask('sequential', options),
  throughput: (options) => child.ask('throughput', options),
});

/**
 * Starts everything that the rows need. Postgres, Temporal and the certificate are the first platform's own.
 * @param {import('./harness.mjs').Harness} harness
 * @returns the rows in the order of a round, and the process ids by name
 */
export async function setUp(harness) {
  const short = await harness.platform('short', { FLEET_FAST_PATH: 'on' });
  await createNamespaces(short.dev.temporal_address, Object.values(NAMESPACES));
  const long = await longPlatform(harness, short.dev);
  const agents = await harness.agents(short);
  await joinAgents(short, agents);
  await joinAgents(long, agents);
  const { floor, bare } = await floors(harness, short, agents);
  const exchange = await agentSocket({ url: agents.connected.ready.url, ca: short.ca });
  const pids = {
    caller: process.pid,
    short: short.pid,
    long: long.pid,
    floor: floor.pid,
    bare: bare.pid,
    connected: agents.connected.pid,
    hosted: agents.hosted.pid,
    ...serverPids(short),
  };
  const callers = {
    agent: new Caller(agents.hosted.ready.url),
    floor: new Caller(floor.ready.url),
    short: new Caller(short.dev.base_url, short.token),
    long: new Caller(long.dev.base_url, long.token),
  };
  return { rows: createRows({ exchange, callers, floor, bare }), pids };
}

/** @param processes those that work for the row, beside the caller */
const row = (name, pace, processes, measurements) => ({ name, pace, processes, ...measurements });

function createRows({ exchange, callers, floor, bare }) {
  const direct = async () => void (await exchange(dispatchOf('direct', PARTS)));
  const fastPath = ['short', 'postgres', 'temporal'];
  const workflowPath = ['long', 'postgres', 'temporal'];
  return [
    row('agent_connected', AGENT, ['connected'], measured(direct)),
    row('agent_hosted', AGENT, ['hosted'], measured(callers.agent.ask())),
    row('floor_without_http', QUICK, ['floor', 'connected', 'postgres'], within(floor)),
    row('floor', QUICK, ['floor', 'connected', 'postgres'], measured(callers.floor.send('echo'))),
    row('send_short', QUICK, [...fastPath, 'connected'], measured(callers.short.send('echo'))),
    row('stream_short', QUICK, [...fastPath, 'connected'], measured(callers.short.stream('echo'))),
    row('floor_hosted', QUICK, ['floor', 'hosted', 'postgres'], measured(callers.floor.send('echo', '/send-hosted'))),
    row('send_short_hosted', QUICK, [...fastPath, 'hosted'], measured(callers.short.send('echo-hosted'))),
    row('floor_temporal', SLOW, ['bare', 'postgres', 'temporal'], within(bare)),
    row('send_long', SLOW, [...workflowPath, 'connected'], measured(callers.long.send('echo'))),
    row('send_long_hosted', SLOW, [...workflowPath, 'hosted'], measured(callers.long.send('echo-hosted'))),
  ];
}
