/**
 * What one tenant feels of another: tenant B sends messages at a steady rate, alone and while tenant A does its worst (docs/performance.md).
 *
 *     npm run bench:fairness -- [--json FILE] [--seconds N] [--rate N] [--messages N] [--agents N] [--rows a,b] [--apart]
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Caller } from './harness/caller.mjs';
import { CpuMeter } from './harness/cpu.mjs';
import { Harness, serverPids } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { createTenant } from './harness/tenants.mjs';

const GOAL = 2;
/** Callers of tenant A. */
const FLOODING = 64;
/** Messages that one agent of tenant A has: an agent takes no more (`LIMITS.dispatchesInFlightPerConnection`). */
const EACH_SILENT = 250;
const WARM_UP_SECONDS = 5;
const IDLE_MS = 2_000;
const ROOM_MS = 60_000;
const RETRY_MS = 50;

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '50' },
    messages: { type: 'string', default: '2000' },
    agents: { type: 'string', default: '1000' },
    rows: { type: 'string', default: 'silent,close,flood,agents' },
    /** Tenant A has a platform of its own on the same machine: then the tenants share the processors only. */
    apart: { type: 'boolean', default: false },
  },
});
const seconds = Number(given.seconds);
const print = (text) => process.stdout.write(`${text}\n`);
const silentAgents = Math.ceil(Number(given.messages) / EACH_SILENT);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);

/** Makes a tenant. @returns its id, and a token */
async function tenantWithToken(platform, name) {
  const { tenant_id, client_id, client_secret } = await createTenant(platform, name);
  const { token } = await platform.post('/auth/get_token', { client_id, client_secret });
  return { tenant_id, token };
}

/**
 * POSTs as a tenant, again and again while the answer is 409: an agent whose session was closed has no room until it has heard that its work was
 * canceled.
 */
async function post(platform, { token }, path, body) {
  for (const until = performance.now() + ROOM_MS; ; await delay(RETRY_MS)) {
    const response = await fetch(new URL(path, platform.dev.base_url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    if (response.ok) return response.json();
    const text = await response.text();
    if (response.status !== 409 || performance.now() > until)
      throw new Error(`${path} answered ${response.status}: ${text}`);
  }
}

/** Registers connected agents of a type for a tenant and connects them. @param silent they never answer */
async function join(harness, platform, tenant, { type, count, silent = false }) {
  progress(`${count} agents of the type ${type}`);
  const registration = { agent_type: type, instance_id: `${type}-0`, max_concurrent_sessions: 0 };
  const { connect_url } = await post(platform, tenant, '/agents/register', registration);
  const database = new pg.Client({ connectionString: platform.dev.database_url });
  await database.connect();
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions)
     SELECT $1, $2 || '-' || n, $2, 'connected', 'offline', 8 FROM generate_series(1, $3 - 1) AS n`,
    [tenant.tenant_id, type, count],
  );
  await database.end();
  const agents = await harness.child('mesh/agents.mjs');
  await agents.ask('join', {
    url: new URL(connect_url).origin.replace('http', 'ws'),
    prefix: type,
    count,
    silent,
    headers: { authorization: `Bearer ${tenant.token}` },
    ca: platform.ca,
  });
}

/** Tenant B: calls at a steady rate, each timed from the moment at which it is due, until `during` has ended. */
async function steady(call, during) {
  const times = [];
  const failures = [];
  const underWay = new Set();
  let over = false;
  void during.finally(() => {
    over = true;
  });
  const from = performance.now();
  for (let sent = 0; !over; sent += 1) {
    const due = from + (sent * 1_000) / Number(given.rate);
    await delay(Math.max(0, due - performance.now()));
    const done = call()
      .then(() => times.push(performance.now() - due))
      .catch((error) => failures.push(error.message))
      .finally(() => underWay.delete(done));
    underWay.add(done);
  }
  await Promise.all(underWay);
  await during;
  return { times, failures };
}

/** What tenant A does in each row: `during` ends the measurement. It resolves to what there is to say about A. */
const ROWS = {
  silent: {
    what: (n) => `${n} messages in flight, their agents never answer`,
    run: async ({ fill }) => {
      await fill();
      return { during: delay(seconds * 1_000) };
    },
  },
  close: {
    what: (n) => `closes sessions with ${n} messages in flight`,
    run: async ({ fill, close }) => {
      await fill();
      const closeAll = async () => {
        const until = performance.now() + seconds * 1_000;
        const closed = [];
        while (performance.now() < until) {
          closed.push(await close());
          await fill();
        }
        return `closed ${closed.length} in ${closed.map((ms) => ms.toFixed(0)).join(', ')} ms`;
      };
      return { during: closeAll() };
    },
  },
  flood: {
    what: () => `${FLOODING} callers flood`,
    run: async ({ flood }) => ({ during: flood('echo') }),
  },
  agents: {
    what: (_, agents) => `${agents} agents of one type, 16 callers`,
    run: async ({ flood }) => ({ during: flood('many', 16) }),
  },
};

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  const platform = await harness.platform('fairness', { TENANT_MAX_IN_FLIGHT: given.messages });
  const platformOfA = given.apart
    ? await harness.platform('fairness-apart', { TENANT_MAX_IN_FLIGHT: given.messages })
    : platform;
  const a = await tenantWithToken(platformOfA, 'A');
  const b = { tenant_id: platform.dev.tenant_id, token: platform.token };
  const wanted = given.rows.split(',');
  await join(harness, platform, b, { type: 'steady', count: 1 });
  await join(harness, platformOfA, a, { type: 'silent', count: silentAgents, silent: true });
  await join(harness, platformOfA, a, { type: 'echo', count: 1 });
  if (wanted.includes('agents')) await join(harness, platformOfA, a, { type: 'many', count: Number(given.agents) });
  const load = await harness.child('fairness/tenant.mjs', { url: platformOfA.dev.base_url, token: a.token });

  const open = [];
  /** Closes all sessions that `fill` opened. @returns milliseconds */
  const close = async () => {
    let ms = 0;
    for (const session_id of open.splice(0)) ms += await load.ask('close', { session_id });
    return ms;
  };
  const fillOne = async (instance_id, count) => {
    const { session_id } = await post(platformOfA, a, '/sessions/init', { instance_id });
    open.push(session_id);
    const statuses = await load.ask('fill', { agentType: 'silent', contextId: session_id, count });
    // A tenant has at most half of the room of a node, and B has some of it.
    if (!(statuses[200] >= count * 0.9)) throw new Error(`a session was not filled: ${JSON.stringify(statuses)}`);
  };
  const fill = async () => {
    for (let agent = 0; agent < silentAgents; agent += 1)
      await fillOne(`silent-${agent}`, Math.floor(Number(given.messages) / silentAgents));
  };
  const flood = async (agentType, width = FLOODING) => {
    await load.ask('flood', { agentType, width });
    await delay(seconds * 1_000);
    return `answers by status: ${JSON.stringify(await load.ask('calm'))}`;
  };
  // Until the work that a row left behind is done, the next does not begin.
  const cpu = new CpuMeter({ platform: platformOfA.pid, temporal: serverPids(platformOfA).temporal });
  const call = new Caller(platform.dev.base_url, b.token).send('steady');
  await steady(call, delay(WARM_UP_SECONDS * 1_000));
  await cpu.measureIdle(IDLE_MS);
  const results = [];
  for (const row of wanted) {
    const alone = await steady(call, delay(seconds * 1_000));
    const { during } = await ROWS[row].run({ fill, close, flood });
    const beside = await steady(call, during);
    const note = await during;
    await close();
    await cpu.settle();
    const of = ({ times }, q) => quantile(times, q);
    results.push({
      row,
      what: ROWS[row].what(given.messages, given.agents),
      alone: { p50_ms: of(alone, 0.5), p99_ms: of(alone, 0.99) },
      beside: { p50_ms: of(beside, 0.5), p99_ms: of(beside, 0.99), calls: beside.times.length },
      failures: [...alone.failures, ...beside.failures],
      ratio: of(beside, 0.99) / of(alone, 0.99),
      note,
    });
    progress(`${row}: ${JSON.stringify(results.at(-1))}`);
  }
  print(`${machine}\n`);
  print(
    markdownTable(
      ['tenant A', 'B alone, p50 / p99 ms', 'B beside A', 'p99, ratio', `goal ≤ ${GOAL}`, 'B refused'],
      results.map(({ what, alone, beside, failures, ratio }) => [
        what,
        `${alone.p50_ms.toFixed(1)} / ${alone.p99_ms.toFixed(1)}`,
        `${beside.p50_ms.toFixed(1)} / ${beside.p99_ms.toFixed(1)}`,
        ratio.toFixed(2),
        ratio <= GOAL && failures.length === 0 ? 'met' : 'missed',
        failures.length,
      ]),
    ),
  );
  if (given.json) writeFileSync(given.json, JSON.stringify(results));
  return 0;
});
