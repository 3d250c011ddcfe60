/**
 * What messages cost that wait for a human: one, three thousand, and ten thousand at once. Each was asked about by a policy and has a workflow
 * (docs/performance.md). The default sizes take about eight minutes, of which half is Temporal starting ten thousand workflows.
 *
 *     npm run bench:waiting -- [--json FILE] [--sizes N,N,…] [--rest SECONDS] [--resolves N]
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
/** Messages that are sent before workflows are waited for: fewer than the wake-ups of a tenant that the platform keeps (512). */
const PORTION = 256;
const POLL_MS = 250;
const PROGRESS_EVERY_MS = 5_000;
/** Without progress for so long, the platform is taken to have failed. */
const STALLED_MS = 120_000;
/** After the last message came: what it has caused (events, their positions, garbage) is over by then. */
const SETTLE_MS = 30_000;
/** More workflows than the worker keeps between their tasks (platform/roles/workers.ts): those that wait longer are replayed when they wake. */
const EVICTING = 600;
/** What the largest size may cost, as a multiple of the size before it; resolving, of the smallest; its workflow, of one that is replayed too. */
const GOALS = { cpuMs: 1.25, transactions: 1.25, rows: 1.25, memoryMiB: 1.25, answerMs: 1.5, resolveMs: 1.5 };

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    sizes: { type: 'string', default: '1,3000,10000' },
    rest: { type: 'string', default: '60' },
    resolves: { type: 'string', default: '20' },
  },
});
const sizes = given.sizes.split(',').map(Number);
const isAscending = sizes.every((size, index) => Number.isInteger(size) && size > (sizes[index - 1] ?? 0));
if (!isAscending || sizes.length < 2) throw new Error('--sizes: two or more numbers, the smallest first');
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

const UNSEEN =
  'SELECT count(*)::int AS count FROM running_messages WHERE wake_requested_at IS NOT NULL OR supervised_at IS NULL';

/** Waits until no more than so many messages are without a workflow that has seen them. @throws Error where nothing moves any more */
async function untilSeen(database, unseenMax, note) {
  let last = Number.POSITIVE_INFINITY;
  let movedAt = performance.now();
  for (;;) {
    const { count } = (await database.query(UNSEEN)).rows[0];
    if (count <= unseenMax) return;
    if (count < last) movedAt = performance.now();
    else if (performance.now() - movedAt > STALLED_MS) throw new Error(`${count} messages get no workflow`);
    last = Math.min(last, count);
    note(count);
    await delay(POLL_MS);
  }
}

/** Tells the progress every few seconds. */
function progressOf(size) {
  let toldAt = performance.now();
  return (sent, unseen) => {
    if (performance.now() - toldAt < PROGRESS_EVERY_MS) return;
    toldAt = performance.now();
    progress(`${sent} of ${size} sent, ${sent - unseen} wait with a workflow`);
  };
}

/** Sends until so many messages wait, each with its workflow; in portions, at the pace of the workflows. */
async function fill(platform, database, ids, size) {
  const tell = progressOf(size);
  while (ids.length < size) {
    let left = Math.min(PORTION, size - ids.length);
    const caller = async () => {
      while (left > 0) {
        left -= 1;
        ids.push(await send(platform));
      }
    };
    await Promise.all(Array.from({ length: Math.min(CALLERS, left) }, caller));
    const isLast = ids.length === size;
    await untilSeen(database, isLast ? 0 : PORTION / 2, (unseen) => tell(ids.length, unseen));
  }
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

/** The medians of what `resolve` gave. */
function medians(resolved) {
  const median = (name) =>
    quantile(
      resolved.map((times) => times[name]),
      0.5,
    );
  return { answerMs: median('answerMs'), resolveMs: median('resolveMs') };
}

/** Rejects a message. @returns milliseconds until the call was answered, and until the message's workflow has seen it */
async function resolve(platform, database, id) {
  const from = performance.now();
  await platform.post(`/messages/${id}/resolve`, { resolution: 'rejected' });
  const answerMs = performance.now() - from;
  const seen = 'SELECT 1 FROM running_messages WHERE message_id = $1';
  while ((await database.query(seen, [id])).rows.length > 0) await delay(2);
  return { answerMs, resolveMs: performance.now() - from };
}

/**
 * What resolving costs where few wait, and none of their workflows is in the worker's cache: so many others wait after them that it holds
 * none of the first, and are gone again.
 */
async function resolveEvicted(platform, database, ids) {
  const first = ids.length + Number(given.resolves);
  progress(`${EVICTING} messages push ${given.resolves} out of the cache`);
  await fill(platform, database, ids, first);
  await fill(platform, database, ids, first + EVICTING);
  const others = ids.splice(first);
  const rejectOthers = async () => {
    for (let id = others.pop(); id; id = others.pop()) await resolve(platform, database, id);
  };
  await Promise.all(Array.from({ length: CALLERS }, rejectOthers));
  await delay(SETTLE_MS);
  const own = [];
  while (ids.length > first - Number(given.resolves)) own.push(await resolve(platform, database, ids.pop()));
  return medians(own);
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
    const startedAt = performance.now();
    await fill(platform, database, ids, size);
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
    progress(`${size} wait, after ${seconds} s; measuring for ${given.rest} s`);
    await delay(SETTLE_MS);
    const resting = await rest(platform, database, times);
    const own = [];
    // Each that is resolved is sent anew, so that as many wait as before.
    for (let count = 0; count < Number(given.resolves); count += 1) {
      await fill(platform, database, ids, size);
      own.push(await resolve(platform, database, ids.splice(Math.floor(Math.random() * ids.length), 1)[0]));
    }
    return { ...resting, ...medians(own) };
  };
  const results = [await measure(sizes[0])];
  const evicted = await resolveEvicted(platform, database, ids);
  for (const size of sizes.slice(1)) results.push(await measure(size));
  await database.end();
  const [last, before, first] = [results.at(-1), results.at(-2), results[0]];
  /** Of more than the cache holds, most are replayed: so is what they are compared with. */
  const isReplayed = sizes.at(-1) > EVICTING;
  const row = (what, name, digits, than) => {
    const ratio = than[name] > 0 ? last[name] / than[name] : 1;
    const verdict = ratio <= GOALS[name] ? 'met' : 'missed';
    const figures = results.map((result) => result[name].toFixed(digits));
    return [what, ...figures, ratio.toFixed(2), `× ${GOALS[name]}`, verdict];
  };
  print(`${machine}\n`);
  print(
    markdownTable(
      ['waiting messages', ...sizes.map(String), 'ratio', 'goal', ''],
      [
        row('CPU of the platform a minute, ms', 'cpuMs', 0, before),
        row('transactions a minute', 'transactions', 0, before),
        row('rows read and written a minute', 'rows', 0, before),
        row('memory of the platform, MiB', 'memoryMiB', 0, before),
        row('resolve one until it is answered, p50 ms', 'answerMs', 1, first),
        row('resolve one until its workflow knows, p50 ms', 'resolveMs', 1, isReplayed ? evicted : first),
      ],
    ),
  );
  print(`\nRatios: ${sizes.at(-1)} to ${sizes.at(-2)}; of resolving, ${sizes.at(-1)} to ${sizes[0]}.`);
  const evictedMs = evicted.resolveMs.toFixed(1);
  print(`One among ${given.resolves} whose workflow is not in the worker's cache: known after ${evictedMs} ms, p50.`);
  const toFirst = (last.resolveMs / first.resolveMs).toFixed(2);
  print(`The ratio of the last row is ${isReplayed ? `to that; to ${sizes[0]} it is` : `to ${sizes[0]}:`} ${toFirst}.`);
  if (given.json) writeFileSync(given.json, JSON.stringify({ sizes, results, evicted }));
  return 0;
});
