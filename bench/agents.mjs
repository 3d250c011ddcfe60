/**
 * What a message costs as agents of its type are added: ten of one type and a thousand of another on one platform (docs/performance.md).
 *
 *     npm run bench:agents -- [--json FILE] [--rounds N] [--agents N]
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Caller } from './harness/caller.mjs';
import { Harness } from './harness/harness.mjs';
import { measured, quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

const WARM_UP = { width: 16, rampMs: 0, ms: 10_000 };
const LEAD = { width: 16, rampMs: 0, ms: 1_500 };
const SEQUENTIAL = { calls: 300, maxMs: 3_000 };
const AT_16 = { width: 16, rampMs: 300, ms: 2_000 };
const GOAL = 1.2;

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    agents: { type: 'string', default: '1000' },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const median = (values) => quantile(values, 0.5);

/** Registers connected agents of a type and connects them. */
async function join(harness, platform, type, count) {
  progress(`${count} agents of the type ${type}`);
  const { connect_url } = await platform.post('/agents/register', { agent_type: type, instance_id: `${type}-0` });
  const database = new pg.Client({ connectionString: platform.dev.database_url });
  await database.connect();
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions)
     SELECT tenant_id, $2 || '-' || n, $2, 'connected', 'offline', 8 FROM tenants, generate_series(1, $3 - 1) AS n WHERE tenant_id = $1`,
    [platform.dev.tenant_id, type, count],
  );
  await database.end();
  const agents = await harness.child('mesh/agents.mjs');
  const headers = { authorization: `Bearer ${platform.token}` };
  await agents.ask('join', {
    url: new URL(connect_url).origin.replace('http', 'ws'),
    prefix: type,
    count,
    headers,
    ca: platform.ca,
  });
}

async function round({ sequential, throughput }) {
  await throughput(LEAD);
  const { p50Ms } = await sequential(SEQUENTIAL);
  const { perSecond } = await throughput(AT_16);
  return { p50Ms, perSecond };
}

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  const platform = await harness.platform('agents', { TENANT_MAX_IN_FLIGHT: '10000' });
  const counts = { few: 10, many: Number(given.agents) };
  for (const [type, count] of Object.entries(counts)) await join(harness, platform, type, count);
  const caller = new Caller(platform.dev.base_url, platform.token);
  const rows = Object.keys(counts).map((type) => ({ type, ...measured(caller.send(type)), rounds: [] }));
  for (const row of rows) await row.throughput(WARM_UP);
  for (let number = 1; number <= Number(given.rounds); number += 1) {
    for (const row of rows) row.rounds.push(await round(row));
    progress(`round ${number} of ${given.rounds}`);
  }
  const [few, many] = rows.map(({ rounds }) => ({
    p50_ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    rps_16: median(rounds.map(({ perSecond }) => perSecond)),
  }));
  const p50 = many.p50_ms / few.p50_ms;
  const rate = few.rps_16 / many.rps_16;
  const result = (ratio) => (ratio <= GOAL ? 'met' : 'missed');
  print(`${machine}\n`);
  print(
    markdownTable(
      ['', `${counts.few} agents`, `${counts.many} agents`, 'ratio', `goal ≤ ${GOAL}`],
      [
        ['p50, ms', few.p50_ms.toFixed(2), many.p50_ms.toFixed(2), p50.toFixed(2), result(p50)],
        ['16 callers, per s', few.rps_16.toFixed(0), many.rps_16.toFixed(0), rate.toFixed(2), result(rate)],
      ],
    ),
  );
  if (given.json) writeFileSync(given.json, JSON.stringify({ few, many, p50, rate }));
  return 0;
});
