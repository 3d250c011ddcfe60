import { expect, test } from 'vitest';
import { SessionGetByIdResponse, SessionsGetResponse } from '../../contracts/api/sessions.js';
import { runAcceptTransaction, UNCOUNTED } from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { idBound } from '../../runtime/ids.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { rollUpUsage } from '../../usage/roll-up.js';
import { joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { erasing } from '../erasure/eraser-fixture.js';
import { callerOf } from '../setup/core.js';
import { rowsRead } from '../setup/rows-read.js';

const DAY_MS = 86_400_000;
const ADVANCE = 'SELECT advance_totals($1, $2) AS counted';
const api = await serveApi();
await joinOnRecord(api, 'worker-1');

/** An id that a process made at a time. */
const idAt = (atMs: number, number: number) => `${idBound('msg', atMs)}-7000-8000-${String(number).padStart(12, '0')}`;

/** A session of a day ago with so many messages, one a millisecond; one in `openOneIn` is not over. Each has used three tokens. */
async function insertSession(name: string, messages: number, openOneIn: number, tenantId = api.tenantId) {
  const from = Date.now() - DAY_MS;
  await api.database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, agent_type, status, idle_timeout_seconds, created_at)
     VALUES ($1, $2, false, 'worker', 'active', 0, now() - interval '1 day')`,
    [tenantId, name],
  );
  await api.database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, deadline_ms, state, usage, created_at)
     SELECT $1, id_bound('msg', at) || '-7000-8000-' || lpad(n::text, 12, '0'), $2, session_uuid(uuid_of($1), $2), 'c', $2 || n, 'message/send', '[]', 1,
            CASE WHEN n % $4::int = 0 THEN 'input-required' ELSE 'completed' END, '{"input_tokens": 1, "output_tokens": 2}', at
       FROM generate_series(1, $3::int) n, LATERAL (SELECT to_timestamp($5::float8 / 1000) + n * interval '1 ms' AS at) t`,
    [tenantId, name, messages, openOneIn, from],
  );
  await api.database.query('ANALYZE messages');
  return from;
}

const totals = async (session_id: string) => {
  const { session } = await api.client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse);
  return { turns: session.total_turns, tokens: session.total_tokens };
};

const counted = async (session_id: string) => {
  const row = 'SELECT turns::int, cardinality(open_ids) AS open FROM session_totals WHERE session_id = $1';
  return (await api.database.query(row, [session_id]))[0];
};
/** Counts what is over. */
const advance = (session: string) => api.db.system((tx) => tx.query(ADVANCE, [api.tenantId, session]));

test('a page of sessions reads few rows, however many messages a session has had', async () => {
  const tenantId = await api.otherTenant();
  const client = await api.clientOf(tenantId, ['full']);
  await client.token();
  await insertSession('page', 25_000, 1_000, tenantId);
  const page = async () => {
    const { sessions } = await client.ok('/sessions/get', {}, SessionsGetResponse);
    expect(sessions).toMatchObject([{ session_id: 'page', total_turns: 25_000, total_tokens: 75_000 }]);
  };
  // Nothing has counted them: who reads them all brings the totals forward.
  await page();
  expect(await counted('page')).toEqual({ turns: 25_000, open: 25 });
  // Those that are not over, and the session.
  expect(await rowsRead(api.database, /^(messages|sessions|session_totals)/, page)).toBeLessThan(60);
});

test('the usage roll-up counts the messages of a long session before anybody asks', async () => {
  const messages = 2_000;
  await insertSession('rolled-up', messages, messages + 1);
  await api.database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, types, events)
     SELECT uuid_of(tenant_id), uuid_of(message_id), session_uuid, session_id, uuid_of(message_id),
            event_bit('message.received') | event_bit('message.completed'), '[{},{}]' FROM messages WHERE session_id = 'rolled-up'`,
  );
  while (((await positionEvents(api.db)) ?? 1) > 0);
  while (((await rollUpUsage(api.db, { waits: true })) ?? 1) > 0);
  expect(await counted('rolled-up')).toEqual({ turns: messages, open: 0 });
});

test('totals stay exact when messages that were counted end, and when one comes late', async () => {
  const from = await insertSession('exact', 1_500, 10);
  await advance('exact');
  // A hundred may be open among those that are counted.
  expect(await counted('exact')).toEqual({ turns: 1_009, open: 100 });
  expect(await totals('exact')).toEqual({ turns: 1_500, tokens: 4_500 });
  await api.database.query(
    `UPDATE messages SET state = 'completed', usage = '{"input_tokens": 10, "output_tokens": 0}'
      WHERE session_id = 'exact' AND state = 'input-required'`,
  );
  const ended = { turns: 1_500, tokens: 1_350 * 3 + 150 * 10 };
  expect(await totals('exact')).toEqual(ended);
  await advance('exact');
  expect(await counted('exact')).toEqual({ turns: 1_500, open: 0 });
  expect(await totals('exact')).toEqual(ended);

  // Its process made the id, and stood still.
  const message = { kind: 'message' as const, role: 'user' as const, messageId: 'late', parts: [], contextId: 'exact' };
  const draft = draftOf(callerOf(api.tenantId), { message }, { method: 'message/send' });
  const late = { ...draft, message_id: idAt(from + 5, 999_999) };
  const how = { counting: UNCOUNTED, offer: null, idempotencyHours: 1 };
  expect((await runAcceptTransaction(api.db, late, how)).verdict).toBe('queued');
  expect(await counted('exact')).toBeUndefined();
  expect(await totals('exact')).toEqual({ ...ended, turns: 1_501 });
});

test('nobody counts a session while a message of it is being accepted', async () => {
  await insertSession('locked', 300, 301);
  await api.db.system(async (tx) => {
    await tx.query(`SELECT 1 FROM sessions WHERE session_id = 'locked' FOR SHARE`);
    expect(await advance('locked')).toEqual([{ counted: 0 }]);
  });
  expect(await advance('locked')).toEqual([{ counted: 300 }]);
});

test('a message that is erased is in no total any more', async () => {
  const eraser = await erasing(api);
  const from = await insertSession('erased', 400, 401);
  await advance('erased');
  expect(await counted('erased')).toEqual({ turns: 400, open: 0 });
  const erasureId = await eraser.order('messages', { message_id: idAt(from + 7, 7) });
  await eraser.finish(erasureId, eraser.alertsRead);
  expect(await totals('erased')).toEqual({ turns: 399, tokens: 1_197 });
});
