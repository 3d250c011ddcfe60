/**
 * What messages cost that wait for a human: one, and ten thousand at once. Each was asked about by a policy and has a workflow
 * (docs/performance.md).
 *
 *     npm run bench:waiting -- [--json FILE] [--size N] [--rest SECONDS] [--resolves N]
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { CpuMeter, hasProc, residentMiB } from './harness/cpu.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

const CALLERS = 16;
const POLL_MS = 250;
/** After the last message came: what it has caused (events, their positions) is over by then. */
const SETTLE_MS = 10_000;
/** What waits may cost this much more with all than with one. Memory: MiB. */
const GOALS = { cpuMs: 600, transactions: 60, memoryMiB: 64, resolve: 1.5 };

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    size: { type: 'string', default: '10000' },
    rest: { type: 'string', default: '60' },
    resolves: { type: 'string', default: '20' },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const perMinute = (value) => (value * 60) / Number(given.rest);

const POLICY = {
  scope: 'admission',
  name: 'everything waits',
  decision: 'require_approval',
  match: { agent_types: ['patient'] },
};

async function send(platform) {
  const message = { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'wait' }] };
  const params = { message, metadata: { agent_type: 'patient' }, configuration: { blocking: false } };
  const { result } = await platform.post('/send', { jsonrpc: '2.0', id: 1, method: 'message/send', params });
  if (result?.status?.state !== 'input-required')
    throw new Error(`the message does not wait: ${JSON.stringify(result)}`);
  return result.id;
}

/** Sends until so many messages wait, then until each has its workflow. */
async function fill(platform, database, ids, size) {
  progress(`${size} messages that wait`);
  const caller = async () => {
    while (ids.length < size) ids.push(await send(platform));
  };
  await Promise.all(Array.from({ length: Math.min(CALLERS, size) }, caller));
  const unseen =
    'SELECT count(*)::int AS count FROM running_messages WHERE wake_requested_at IS NOT NULL OR supervised_at IS NULL';
  while ((await database.query(unseen)).rows[0].count > 0) await delay(POLL_MS);
}

const COUNTERS = `
  SELECT xact_commit::float8 AS transactions, (tup_returned + tup_inserted + tup_updated + tup_deleted)::float8 AS rows
    FROM pg_stat_database WHERE datname = current_database()`;

/** What the platform does while everything waits. */
async function rest(platform, database, times) {
  const read = async () => ({ ...(await database.query(COUNTERS)).rows[0], cpu: times.read().platform ?? 0 });
  const before = await read();
  await delay(Number(given.rest) * 1_000);
  const after = await read();
  return {
    cpuMs: perMinute(after.cpu - before.cpu),
    transactions: perMinute(after.transactions - before.transactions),
    rows: perMinute(after.rows - before.rows),
    memoryMiB: hasProc ? residentMiB(platform.pid) : 0,
  };
}

/** Rejects messages one after the other, each until its workflow has seen it. */
async function resolve(platform, database, ids) {
  const times = [];
  for (const id of ids) {
    const from = performance.now();
    await platform.post(`/messages/${id}/resolve`, { resolution: 'rejected' });
    const seen = 'SELECT 1 FROM running_messages WHERE message_id = $1';
    while ((await database.query(seen, [id])).rows.length > 0) await delay(2);
    times.push(performance.now() - from);
  }
  return quantile(times, 0.5);
}

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  const platform = await harness.platform('waiting', {});
  await platform.post('/agents/register', { agent_type: 'patient', instance_id: 'patient-1' });
  await platform.post('/policies/create_policy', POLICY);
  const database = new pg.Client({ connectionString: platform.dev.database_url });
  await database.connect();
  const times = new CpuMeter({ platform: platform.pid });
  const ids = [];
  const measure = async (size) => {
    const resolves = Number(given.resolves);
    await fill(platform, database, ids, size);
    await delay(SETTLE_MS);
    const resting = await rest(platform, database, times);
    const own = [];
    // With one at a time as many are resolved as with all: each is sent anew.
    for (let count = 0; count < resolves; count += 1) {
      if (ids.length < size) await fill(platform, database, ids, size);
      own.push(await resolve(platform, database, ids.splice(Math.floor(Math.random() * ids.length), 1)));
    }
    return { ...resting, resolveMs: quantile(own, 0.5) };
  };
  const one = await measure(1);
  const many = await measure(Number(given.size));
  await database.end();
  const row = (what, name, digits, goal, isMet) => [
    what,
    one[name].toFixed(digits),
    many[name].toFixed(digits),
    goal,
    isMet ? 'met' : 'missed',
  ];
  const more = (name) => many[name] - one[name];
  print(`${machine}\n`);
  print(
    markdownTable(
      ['', '1 waits', `${given.size} wait`, 'goal', ''],
      [
        row('CPU of the platform a minute, ms', 'cpuMs', 0, `+ ${GOALS.cpuMs}`, more('cpuMs') <= GOALS.cpuMs),
        row(
          'transactions a minute',
          'transactions',
          0,
          `+ ${GOALS.transactions}`,
          more('transactions') <= GOALS.transactions,
        ),
        row('rows read and written a minute', 'rows', 0, '', true),
        row(
          'memory of the platform, MiB',
          'memoryMiB',
          0,
          `+ ${GOALS.memoryMiB}`,
          more('memoryMiB') <= GOALS.memoryMiB,
        ),
        row(
          'resolve until the workflow knows, p50 ms',
          'resolveMs',
          1,
          `× ${GOALS.resolve}`,
          many.resolveMs <= one.resolveMs * GOALS.resolve,
        ),
      ],
    ),
  );
  if (given.json) writeFileSync(given.json, JSON.stringify({ one, many }));
  return 0;
});
