import { beforeEach, expect, test } from 'vitest';
import { MessagesGetRequest } from '../../contracts/api/messages.js';
import { groupMessages } from '../../messages/read/lists/message-groups.js';
import { listMessages } from '../../messages/read/lists/message-list.js';
import { readRates } from '../../messages/read/lists/message-rates.js';
import { rollUpAll } from '../../usage/roll-up.js';
import { TEST_SECRETS } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';

const database = await freshDatabase();
const db = database.db();
const fixture = new RecordFixture(database);
const MINUTE_MS = 60_000;
beforeEach(async () => {
  await fixture.reset();
  await fixture.agent('x', { max_concurrent_sessions: 100 });
});

const page = (query: object, caller = fixture.caller) =>
  listMessages({ db, secrets: TEST_SECRETS, inFlightMax: 2_000 }, caller, MessagesGetRequest.parse(query));
/** The ids of all pages, and how many each page said that there are. */
async function walked(query: object): Promise<{ ids: string[]; counts: number[]; pages: number }> {
  const [ids, counts]: [string[], number[]] = [[], []];
  for (let cursor: string | undefined, pages = 1; ; pages += 1) {
    const { rows, count, next_cursor } = await page({ ...query, ...(cursor && { cursor }) });
    ids.push(...rows.map(({ message_id }) => message_id));
    counts.push(count);
    if (!next_cursor) return { ids, counts, pages };
    cursor = next_cursor;
  }
}
const sent = async (count: number, text?: string) => {
  const ids: string[] = [];
  for (let nth = 0; nth < count; nth += 1) ids.unshift((await fixture.send({}, text ? { text } : {})).message_id);
  return ids;
};
/** The message has waited for so many minutes. */
const waited = (message_id: string, minutes: number) =>
  database.query("UPDATE running_messages SET unrouted_since = now() - $2 * interval '1 min' WHERE message_id = $1", [
    message_id,
    minutes,
  ]);

test('pages go on by cursor: none is missed or repeated, and what comes meanwhile moves none', async () => {
  const ids = await sent(5);
  const first = await page({ page_size: 2 });
  await sent(1);
  const second = await page({ page_size: 2, cursor: first.next_cursor });
  const third = await page({ page_size: 2, cursor: second.next_cursor });
  expect([first, second, third].flatMap(({ rows }) => rows.map(({ message_id }) => message_id))).toEqual(ids);
  expect([first.count, second.count, third.count, third.next_cursor]).toEqual([5, 5, 5, undefined]);
  expect((await page({ page_size: 6 })).next_cursor).toBeUndefined();
});

test('a cursor is good for its filters alone, and not together with a page', async () => {
  await sent(3);
  const { next_cursor: cursor } = await page({ page_size: 1 });
  await expect(page({ page_size: 1, state: 'working', cursor })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  for (const more of [{ cursor }, { text: 'a' }, { waits_for: 'room' }, { waited_ms: 1 }])
    expect(MessagesGetRequest.safeParse({ page: 2, ...more }).success).toBe(false);
});

test('a text is found in what was sent, in the answer and in the error, whatever its case', async () => {
  const [asked] = await sent(1, 'Refund ORDER-7, "please"');
  const answered = await fixture.send({}, { text: 'What of it?' });
  const artifacts = [{ artifactId: 'a', parts: [{ kind: 'text' as const, text: 'Order-7 is refunded' }] }];
  await fixture.dispatches.end(answered, { state: 'completed', artifacts }, 1);
  const failed = await fixture.send({}, { text: 'Again' });
  const error = { code: 'HANDLER_ERROR', message: 'order-7: no such order' };
  await fixture.dispatches.end(failed, { state: 'failed', artifacts: [], error }, 1);
  await sent(2, 'order-8 %');
  expect(await walked({ text: 'order-7' })).toMatchObject({ ids: [failed.message_id, answered.message_id, asked] });
  expect((await walked({ text: 'order-7', page_size: 1 })).ids).toHaveLength(3);
  expect((await walked({ text: '"please"' })).ids).toEqual([asked]);
  expect((await walked({ text: '%', state: 'working' })).ids).toHaveLength(2);
  expect((await walked({ text: 'kind' })).ids).toEqual([]);
});

test('a search that looks through many messages goes on where it stopped, with what it found so far', async () => {
  const [needle] = await sent(1, 'needle');
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, credential_id, client_message_id, state, method, parts, deadline_ms)
     SELECT $1, id_bound('msg', now()) || '-7000-8000-' || lpad(n::text, 12, '0'), 'ses_1', 'cred_1', n, 'completed', 'message/send', '[{"kind": "text", "text": "hay"}]', 1 FROM generate_series(1, 2100) n`,
    [fixture.tenantId],
  );
  const first = await page({ text: 'needle' });
  expect(first).toMatchObject({ rows: [], count: 0, count_estimated: true, next_cursor: expect.any(String) });
  expect(await walked({ text: 'needle' })).toEqual({ ids: [needle], counts: [0, 1], pages: 2 });
});

test('messages that wait are listed by what for and for how long, the longest wait first', async () => {
  await fixture.setAgents(`max_concurrent_sessions = 1`);
  await fixture.send();
  const [short, long] = [await fixture.send(), await fixture.send()];
  await waited(long.message_id, 30);
  await waited(short.message_id, 5);
  const [both, one] = [[long.message_id, short.message_id], [long.message_id]];
  expect((await walked({ waits_for: 'room' })).ids).toEqual(both);
  expect(await walked({ waits_for: 'room', page_size: 1 })).toEqual({ ids: both, counts: [2, 2], pages: 2 });
  expect((await walked({ waited_ms: 10 * MINUTE_MS })).ids).toEqual(one);
  expect((await walked({ waited_ms: 0, agent_type: 'painter' })).ids).toEqual([]);
  expect((await walked({ waits_for: 'agent' })).ids).toEqual([]);
  const [row] = (await page({ waits_for: 'room' })).rows;
  expect(row?.waits_for).toMatchObject({ kind: 'room', target: { agent_type: 'worker' }, online: true });
  await fixture.setAgents(`status = 'offline'`);
  expect((await walked({ waits_for: 'agent' })).ids).toEqual(both);
  const groups = (waited_ms: number) => groupMessages(db, fixture.tenantId, { by: 'waits_for', waited_ms }, 2_000);
  expect(await groups(10 * MINUTE_MS)).toMatchObject([{ key: 'agent', count: 1 }]);
  expect(await groups(MINUTE_MS)).toMatchObject([{ key: 'agent', count: 2 }]);
});

test('a message that asks a person waits since its question, and only who may see it finds it', async () => {
  const asking = await fixture.send({ user_id: 'ada' }, { text: 'May I?' });
  await fixture.answer(asking, 'input-required');
  const [row] = (await page({ waits_for: 'person' })).rows;
  expect(row).toMatchObject({ message_id: asking.message_id, waits_for: { kind: 'person' } });
  expect(row?.waits_for?.since).toBe(row?.input_request?.requested_at);
  const idsOf = async (query: object, as: object) =>
    (await page(query, { ...fixture.caller, ...as })).rows.map(({ message_id }) => message_id);
  expect(await idsOf({ waits_for: 'person' }, { user_id: 'ada' })).toEqual([asking.message_id]);
  expect(await idsOf({ waits_for: 'person' }, { user_id: 'bob' })).toEqual([]);
  expect(await idsOf({ waits_for: 'person', text: 'MAY i' }, {})).toEqual([asking.message_id]);
  expect(await idsOf({ waits_for: 'person', text: 'else' }, {})).toEqual([]);
});

test('each hour says what was accepted, what failed and how long answers took', async () => {
  const [done, failed] = [await fixture.send(), await fixture.send()];
  await fixture.dispatches.end(done, { state: 'completed', artifacts: [] }, 1);
  const error = { code: 'HANDLER_ERROR', message: 'no luck' };
  await fixture.dispatches.end(failed, { state: 'failed', artifacts: [], error }, 1);
  await database.query("UPDATE messages SET completed_at = created_at + interval '250 ms' WHERE message_id = $1", [
    done.message_id,
  ]);
  await rollUpAll(db);
  const hours = await readRates(db, fixture.tenantId, 24);
  expect(hours).toHaveLength(24);
  const sum = (of: 'accepted' | 'failed') => hours.reduce((total, hour) => total + hour[of], 0);
  expect([sum('accepted'), sum('failed')]).toEqual([2, 1]);
  expect(hours.flatMap(({ latency_ms: { p50, p95 } }) => (p50 === null ? [] : [p50, p95]))).toEqual([250, 250]);
});
