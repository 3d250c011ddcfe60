/** Many implicit sessions that are due at once: how long they take to end, and what `/send` takes meanwhile. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { Caller } from '../harness/caller.mjs';
import { quantile } from '../harness/measure.mjs';
import { markdownTable } from '../harness/report.mjs';

/** How long `/send` is measured before and after. */
const ALONE_MS = 15_000;
const WARM_UP_MS = 10_000;
const CALLERS = 2;
const POLL_MS = 200;
const GOALS = { seconds: 60, p95: 1.5 };

/** Sessions with a message each, which ended an hour ago; nobody looks at them before they are made due. */
const SESSIONS = `
  WITH made AS (
    SELECT n, lpad(to_hex((extract(epoch FROM now() - interval '1 hour') * 1000)::bigint), 12, '0') AS hex, lpad(to_hex(n), 12, '0') AS tail
      FROM generate_series(1, $2::bigint) AS n),
  sent AS (
    INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state,
        created_at, updated_at)
    SELECT $1, 'msg_' || substr(hex, 1, 8) || '-' || substr(hex, 9) || '-7000-8000-' || tail, 'ses_idle-' || tail, session_uuid(uuid_of($1), 'ses_idle-' || tail), 'cred_past', tail,
           'message/send', '[]', '', 600000, 'completed', now() - interval '1 hour', now() - interval '1 hour' FROM made)
  INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_at, idle_check_at)
    SELECT $1, 'ses_idle-' || tail, false, 'active', 1800, now() - interval '1 hour', 'infinity' FROM made`;

/** Calls until `isOver`. @returns the milliseconds of each call */
async function callUntil(send, isOver) {
  const times = [];
  const caller = async () => {
    while (!isOver()) {
      const from = performance.now();
      await send();
      times.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return times;
}

const forMs = (ms) => {
  const until = performance.now() + ms;
  return () => performance.now() > until;
};

/** @returns a Markdown table, and the figures */
export async function measureExpiry(platform, sessions) {
  const client = new pg.Client({ connectionString: platform.dev.database_url });
  await client.connect();
  const caller = new Caller(platform.dev.base_url, platform.token);
  const send = caller.send('echo');
  try {
    await client.query(SESSIONS, [platform.dev.tenant_id, sessions]);
    await client.query('VACUUM ANALYZE sessions, messages');
    await callUntil(send, forMs(WARM_UP_MS));
    const before = await callUntil(send, forMs(ALONE_MS));
    await client.query("UPDATE sessions SET idle_check_at = now() WHERE session_id LIKE 'ses_idle-%'");
    const from = performance.now();
    let isOver = false;
    const watch = async () => {
      while (!isOver) {
        await delay(POLL_MS);
        const { rows } = await client.query('SELECT 1 FROM sessions WHERE idle_check_at <= now() LIMIT 1');
        isOver = rows.length === 0;
      }
      return (performance.now() - from) / 1_000;
    };
    const [seconds, during] = await Promise.all([watch(), callUntil(send, () => isOver)]);
    const after = await callUntil(send, forMs(ALONE_MS));
    const p95 = { before: quantile(before, 0.95), during: quantile(during, 0.95), after: quantile(after, 0.95) };
    const ratio = p95.during / ((p95.before + p95.after) / 2);
    const result = (value, goal) => (value <= goal ? 'met' : 'missed');
    const rows = [
      ['time until all have ended, s', seconds.toFixed(1), `≤ ${GOALS.seconds}`, result(seconds, GOALS.seconds)],
      [
        `\`/send\` p95: ${p95.during.toFixed(2)} ms, alone ${p95.before.toFixed(2)} before and ${p95.after.toFixed(2)} after`,
        ratio.toFixed(2),
        `≤ ${GOALS.p95}`,
        result(ratio, GOALS.p95),
      ],
    ];
    return { seconds, p95, ratio, table: markdownTable([`${sessions} sessions due at once`, '', 'goal', ''], rows) };
  } finally {
    await client.end();
    await caller.close();
  }
}
