/**
 * What a message costs as agents of its type are added: ten of one type and a thousand of another on one platform, with room, full, hosted, and for
 * messages that name a skill (docs/performance.md).
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

const WARM_UP = { width: 16, rampMs: 0, ms: 5_000 };
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

/** What differs between the fleets: `odd` is set for every other agent, `busy` gives those a session, `skill` is what messages ask for. */
const FLEETS = {
  'with room': {},
  'and a skill': { of: 'with room', skill: 'sums' },
  'half of them full': { odd: 'max_concurrent_sessions = 1', busy: true },
  'half of them hosted': { odd: "deployment_mode = 'hosted', status = 'available', public_url = $3", hosted: true },
};

async function sql(platform, work) {
  const database = new pg.Client({ connectionString: platform.dev.database_url });
  await database.connect();
  try {
    await work((text, values) => database.query(text, values), platform.dev.tenant_id);
  } finally {
    await database.end();
  }
}

/** Registers agents of a type and connects them, those that are hosted left out. */
async function join(harness, platform, type, count, { odd, busy, hosted }) {
  progress(`${count} agents of the type ${type}`);
  const skills = [{ id: 'sums', name: 'Sums' }];
  const { connect_url } = await platform.post('/agents/register', {
    agent_type: type,
    instance_id: `${type}-0`,
    skills,
  });
  await sql(platform, (query, tenant) =>
    query(
      `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions, skills)
       SELECT $1, $2 || '-' || n, $2, 'connected', 'offline', 0, $4::jsonb FROM generate_series(1, $3::int - 1) AS n`,
      [tenant, type, count, JSON.stringify(skills)],
    ),
  );
  const agents = await harness.child('mesh/agents.mjs');
  const headers = { authorization: `Bearer ${platform.token}` };
  await agents.ask('join', {
    url: new URL(connect_url).origin.replace('http', 'ws'),
    prefix: type,
    count: hosted ? count / 2 : count,
    headers,
    ca: platform.ca,
  });
  if (!odd) return;
  const url = hosted && (await harness.child('harness/echo-hosted.mjs')).ready.url;
  // Of hosted fleets the second half has no sockets, of others every other agent is meant.
  const isOdd = `substring(instance_id from '[0-9]+$')::int ${hosted ? `>= ${count / 2}` : '% 2 = 1'}`;
  await sql(platform, async (query, tenant) => {
    const ofType = `tenant_id = $1 AND agent_type = $2 AND ${isOdd}`;
    await query(`UPDATE agents SET ${odd} WHERE ${ofType}`, [tenant, type, ...(url ? [url] : [])]);
    if (busy)
      await query(
        `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, instance_id, agent_type, supervised_at)
         SELECT tenant_id, 'ses_' || gen_random_uuid(), true, 'active', 0, instance_id, agent_type, now() FROM agents WHERE ${ofType}`,
        [tenant, type],
      );
    await query('ANALYZE agents, agent_skills, sessions');
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
  const caller = new Caller(platform.dev.base_url, platform.token);
  const rows = [];
  for (const [name, fleet] of Object.entries(FLEETS))
    for (const [size, count] of Object.entries(counts)) {
      const type = `${fleet.of ?? name} ${size}`.replaceAll(' ', '-');
      if (!fleet.of) await join(harness, platform, type, count, fleet);
      const work = caller.send(type, '/send', undefined, fleet.skill && { skill_id: fleet.skill });
      rows.push({ name, size, ...measured(work), rounds: [] });
    }
  for (const row of rows) await row.throughput(WARM_UP);
  for (let number = 1; number <= Number(given.rounds); number += 1) {
    for (const row of rows) row.rounds.push(await round(row));
    progress(`round ${number} of ${given.rounds}`);
  }
  const result = (ratio) => `${ratio.toFixed(2)} (${ratio <= GOAL ? 'met' : 'missed'})`;
  const results = Object.keys(FLEETS).map((name) => {
    const [few, many] = rows
      .filter((row) => row.name === name)
      .map(({ rounds }) => ({
        p50_ms: median(rounds.map(({ p50Ms }) => p50Ms)),
        rps_16: median(rounds.map(({ perSecond }) => perSecond)),
      }));
    return { name, few, many, p50: many.p50_ms / few.p50_ms, rate: few.rps_16 / many.rps_16 };
  });
  print(`${machine}\n`);
  const both = (key) => [`${key}, ${counts.few} agents`, `${counts.many} agents`, `ratio (≤ ${GOAL})`];
  print(
    markdownTable(
      ['agents', ...both('p50, ms'), ...both('16 callers, per s')],
      results.map(({ name, few, many, p50, rate }) => [
        name,
        few.p50_ms.toFixed(2),
        many.p50_ms.toFixed(2),
        result(p50),
        few.rps_16.toFixed(0),
        many.rps_16.toFixed(0),
        result(rate),
      ]),
    ),
  );
  if (given.json) writeFileSync(given.json, JSON.stringify(results));
  return 0;
});
