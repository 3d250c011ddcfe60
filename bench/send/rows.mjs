/** The rows of `npm run bench:send`: what each row calls, and which processes serve it. */
import { Caller } from '../harness/caller.mjs';
import { createDatabase, joinAgents, serverPids } from '../harness/harness.mjs';
import { measured } from '../harness/measure.mjs';
import { POOL_MAX } from '../harness/platform.mjs';

/**
 * The size of one round: `calls` in sequence within `maxMs`, then `ms` at 16 and at 64 callers. Each row is warmed up once for `warmMs`,
 * and for `leadMs` in every round, because processes cool down while other rows run.
 */
const QUICK = { calls: 300, maxMs: 3_000, rampMs: 300, ms: 1_600, warmMs: 20_000, leadMs: 1_500 };

/**
 * Starts everything that the rows need. All use the embedded Postgres, Temporal and certificate of the platform.
 * @param {import('../harness/harness.mjs').Harness} harness
 * @returns the rows in the order of a round, and the process ids by name
 */
export async function setUp(harness) {
  const platform = await harness.platform('platform');
  const agents = await harness.agents(platform);
  await joinAgents(platform, agents);
  const floor = await harness.child('send/floor.mjs', {
    databaseUrl: await createDatabase(platform.dev.database_url, 'floor'),
    poolMax: POOL_MAX,
    agent: { url: agents.connected.ready.url, ca: platform.ca },
  });
  // The names of the rows and of the CPU columns (docs/performance.md).
  const pids = {
    caller: process.pid,
    platform: platform.pid,
    floor: floor.pid,
    connected: agents.connected.pid,
    hosted: agents.hosted.pid,
    ...serverPids(platform),
  };
  const callers = {
    floor: new Caller(floor.ready.url),
    platform: new Caller(platform.dev.base_url, platform.token),
  };
  return { rows: createRows(callers), pids };
}

/** @param processes that serve the row, beside the caller */
const row = (name, pace, processes, work) => ({ name, pace, processes, ...measured(work) });

function createRows(callers) {
  const servers = ['postgres', 'temporal'];
  return [
    row('floor', QUICK, ['floor', 'connected', 'postgres'], callers.floor.send('echo')),
    row('send', QUICK, ['platform', 'connected', ...servers], callers.platform.send('echo')),
    row('send_ten', QUICK, ['platform', 'connected', ...servers], callers.platform.send('echo-ten')),
    row('stream', QUICK, ['platform', 'connected', ...servers], callers.platform.stream('echo')),
    row('send_hosted', QUICK, ['platform', 'hosted', ...servers], callers.platform.send('echo-hosted')),
  ];
}
