/**
 * What a page of a list costs as the list grows: events and tasks of a tenant with a thousand of them beside one with a million, both made by
 * SQL on one platform (docs/performance.md).
 *
 *     npm run bench:lists -- [--json FILE] [--rows N] [--rounds N]
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { connectDatabase } from './harness/database.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

const FLEET = fileURLToPath(new URL('../dist/cli/fleet.js', import.meta.url));
const FEW = 1_000;
const DEEP_PAGE = 1_000;
const CALLS = 20;

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const median = (values) => quantile(values, 0.5);

/** Ids of one millisecond after the other, the newest now. `$1` is the tenant, `$2` the number of rows. */
const ids = (prefix) =>
  `'${prefix}_' || left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0')`;
const NUMBERS = `(SELECT n, at, lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') AS hex
  FROM generate_series(1, $2::bigint) AS n, LATERAL (SELECT now() - ($2 - n) * interval '1 ms' AS at) AS t) AS numbers`;
const FILL = [
  // One in a row: the most that there is to skip.
  `INSERT INTO event_groups (tenant_id, types, instance_mark, group_id, dispatch_id, session_uuid, session_name, occurred_at, events)
   SELECT uuid_of($1), event_bit('dispatch.success'), instance_mark('worker-' || n % 10), (left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(to_hex(n), 10, '0') || '00')::uuid,
          right(${ids('dsp')}, 36)::uuid, session_uuid(uuid_of($1), 'ses_' || n / 100), 'ses_' || n / 100, at,
          jsonb_build_array(jsonb_build_object('instance_id', 'worker-' || n % 10, 'duration_ms', n % 1000)) FROM ${NUMBERS}`,
  `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state,
     unsuccessful_state, instance_id, agent_type, artifacts, created_at, updated_at, started_at, completed_at)
   SELECT $1, ${ids('msg')}, session_id, session_uuid(uuid_of($1), session_id), 'cred', 'client-' || n, 'message/send', '[{"kind":"text","text":"What is 6 * 7?"}]',
          md5(n::text), 600000, CASE WHEN n % 20 = 0 THEN 'canceled' ELSE 'completed' END, CASE WHEN n % 20 = 0 THEN 'canceled' END, 'worker-1', 'worker', '[{"artifactId":"a","parts":[{"kind":"text","text":"42"}]}]', at, at, at, at
     FROM ${NUMBERS}, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN 'long' ELSE 'ses_' || n / 100 END AS session_id) of_session`,
];

/** A tenant with so many events and messages. @returns how to call the platform as one of its credentials */
async function fill(platform, database, rows) {
  const fleet = async (...args) => {
    const env = { ...process.env, FLEET_DATA_DIR: platform.dataDir };
    return JSON.parse((await promisify(execFile)(process.execPath, [FLEET, ...args, '--json'], { env })).stdout);
  };
  const { tenant_id } = await fleet('tenants', 'create', `of-${rows}`);
  const credential = await fleet('credentials', 'create', '--tenant', tenant_id, '--name', 'bench', '--scopes', 'full');
  progress(`${rows} events and messages`);
  for (const statement of FILL) await database.query(statement, [tenant_id, rows]);
  const { client_id, client_secret } = credential;
  const { token } = await platform.post('/auth/get_token', { client_id, client_secret });
  return async (path, body) => {
    const from = performance.now();
    const response = await fetch(`${platform.dev.base_url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, 'a2a-version': '1.0' },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok || answer.error) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(answer)}`);
    return { answer, ms: performance.now() - from };
  };
}

const page = (path) => (number, size) => [path, { page: number, page_size: size }];
const tasks = (pageSize, filter) => [
  '/send',
  { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageSize, ...filter } },
];
const events = page('/telemetry/get_events');
const messages = page('/messages/get');
const CANCELED = ['/messages/get', { page: 1, page_size: 25, state: 'canceled' }];
const twice = (call) => [call, call];
/** A list of its own each time, so that each call counts. The filter makes it read the rows that it counts. */
const eventsCounted = () => ['/telemetry/get_events', { to: new Date(4e12 + Math.random() * 1e12).toISOString() }];
const made = (call) => (typeof call === 'function' ? call() : call);
/** Calls of the few and of the many rows whose times are divided, and the most that may come out. */
const RATIOS = [
  ['events, page 1', events(1, 25), events(1, 25), 2],
  ['events, page 1,000', null, events(DEEP_PAGE, 25), 5, events(1, 25)],
  ['events, page 1, 100 a page', events(1, 100), events(1, 100), 2],
  ['events, page 1,000, 100 a page', null, events(DEEP_PAGE, 100), 5, events(1, 100)],
  ['events before a time, page 1, counted anew', eventsCounted, eventsCounted, null],
  ['messages, page 1', messages(1, 25), messages(1, 25), 2],
  ['messages, page 1,000', null, messages(DEEP_PAGE, 25), 5, messages(1, 25)],
  ['canceled messages, page 1', CANCELED, CANCELED, 2],
  ['`ListTasks`, first page', tasks(25), tasks(25), 2],
  ['`ListTasks` of a state, first page', ...twice(tasks(25, { status: 'TASK_STATE_CANCELED' })), 2],
  ['`ListTasks` of a session with half of all messages', ...twice(tasks(25, { contextId: 'long' })), 2],
];

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  const platform = await harness.platform('lists', {});
  const database = await connectDatabase(platform.dev.database_url);
  const few = await fill(platform, database, FEW);
  const many = await fill(platform, database, Number(given.rows));
  await database.query('VACUUM ANALYZE event_groups, messages');
  await database.end();

  const counting = [];
  for (const call of [events(1, 25), messages(1, 25)]) {
    const { answer, ms } = await many(...call);
    counting.push([call[0], ms.toFixed(1), answer.count, answer.count_estimated === true]);
  }
  const times = RATIOS.map(() => ({ of: [], to: [] }));
  for (let round = 0; round < Number(given.rounds); round += 1) {
    for (const [place, [, ofFew, ofMany, , base]] of RATIOS.entries()) {
      for (let call = 0; call < CALLS; call += 1) {
        times[place].to.push((await (base ? many(...made(base)) : few(...made(ofFew)))).ms);
        times[place].of.push((await many(...made(ofMany))).ms);
      }
    }
    progress(`round ${round + 1} of ${given.rounds}`);
  }
  const results = RATIOS.map(([name, , , goal, base], place) => {
    const [of, to] = [median(times[place].of), median(times[place].to)];
    return { name, beside: base ? 'page 1' : `${FEW} rows`, of_ms: of, to_ms: to, ratio: of / to, goal };
  });
  print(`${machine}, ${given.rows} rows\n`);
  print(
    markdownTable(
      ['p50', 'ms', 'beside', 'ms', 'ratio', 'goal'],
      results.map(({ name, beside, of_ms, to_ms, ratio, goal }) => [
        name,
        of_ms.toFixed(1),
        beside,
        to_ms.toFixed(1),
        ratio.toFixed(2),
        goal === null ? '' : `≤ ${goal}: ${ratio <= goal ? 'met' : 'missed'}`,
      ]),
    ),
  );
  print('\nThe first call counts; for a minute the others take its estimate.\n');
  print(markdownTable(['first call', 'ms', 'count', 'estimated'], counting));
  if (given.json) writeFileSync(given.json, JSON.stringify({ results, counting }));
  return 0;
});
