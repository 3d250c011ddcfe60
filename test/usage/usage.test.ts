import { expect, test } from 'vitest';
import { MessageGetByIdResponse } from '../../contracts/api/messages.js';
import { SessionGetByIdResponse } from '../../contracts/api/sessions.js';
import { PricesResponse } from '../../contracts/api/tenants/tenants.js';
import { GetUsageResponse, type UsageSums } from '../../contracts/api/usage.js';
import { openDb } from '../../db/pool.js';
import { createLogger } from '../../runtime/logger.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { rollUpUsage } from '../../usage/roll-up.js';
import { ToolUsage } from '../../usage/tool-usage.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { cleanUp } from '../setup/clean-up.js';
import { connect } from '../telemetry/event-writer.js';

const log = createLogger({ level: 'silent' });
const api = await serveApi();
await joinOnRecord(api, 'worker-1');

const usageOf = (body: object = {}) => api.client.ok('/telemetry/get_usage', body, GetUsageResponse);
const rowsOf = async (group_by: string) => (await usageOf({ group_by, page_size: 100 })).rows;
const send = (contextId?: string) => api.client.send('hello', { blocking: false, ...(contextId && { contextId }) });
const used = (input_tokens: number, output_tokens: number, model: string, cost_usd?: number) => ({
  usage: { input_tokens, output_tokens, model, ...(cost_usd !== undefined && { cost_usd }) },
});

const setPrices = (price: object) => api.client.ok('/tenants/set_prices', price, PricesResponse);
/** The same price for what goes in and comes out. */
const setPrice = (model: string, perMillion: number | null) =>
  setPrices({ model, input_per_million: perMillion, output_per_million: perMillion });

/** What changes by the work: the difference of the totals. */
async function totalsOf(work: () => Promise<unknown>): Promise<UsageSums> {
  const { totals: before } = await usageOf({ summary: true });
  await work();
  const { totals: after } = await usageOf({ summary: true });
  const entries = Object.entries(after).map(([name, sum]) => [name, sum - before[name as keyof UsageSums]]);
  return Object.fromEntries(entries) as UsageSums;
}

/** What sessions say must be what the report says, to the unit. */
async function expectAgreement(sessionId: string) {
  const { session } = await api.client.ok('/sessions/get_by_id', { session_id: sessionId }, SessionGetByIdResponse);
  const row = (await rowsOf('session')).find(({ session: id }) => id === sessionId);
  const said = { turns: session.total_turns, tokens: session.total_tokens };
  expect({ turns: row?.messages, tokens: row?.total_tokens }).toEqual(said);
  return said;
}

test('a message counts when it is accepted, its tokens as soon as they are known, and no turn of it twice', async () => {
  const { id, contextId } = await send();
  expect(await expectAgreement(contextId)).toEqual({ turns: 1, tokens: 0 });
  await answerMessage(api, id, { ...ASKS, ...used(30, 3, 'small') });
  expect(await expectAgreement(contextId)).toEqual({ turns: 1, tokens: 33 });
  await api.client.post(`/messages/${id}/resolve`, { resolution: 'confirmed' });
  await answerMessage(api, id, { ...COMPLETED, ...used(70, 7, 'small') });
  expect(await expectAgreement(contextId)).toEqual({ turns: 1, tokens: 110 });
  const { id: failed } = await send(contextId);
  await answerMessage(api, failed, { state: 'failed', artifacts: [], ...used(5, 0, 'large') });
  const { id: canceled } = await send(contextId);
  await api.client.post('/messages/cancel', { message_id: canceled });
  expect(await expectAgreement(contextId)).toEqual({ turns: 3, tokens: 115 });
  const models = new Map((await rowsOf('model')).map((row) => [row.model, row]));
  expect(models.get('small')).toMatchObject({ messages: 1, dispatches: 2, input_tokens: 100, output_tokens: 10 });
  expect(models.get('large')).toMatchObject({ messages: 1, dispatches: 1, total_tokens: 5 });
  expect(models.get(null)).toMatchObject({ messages: 1, dispatches: 0 });
});

test('what users and credentials use is told apart', async () => {
  const metadata = { agent_type: 'worker', user_id: 'ann' };
  const before = (await rowsOf('credential')).map(({ credential, messages }) => [credential, messages] as const);
  const { id } = await api.client.send('hello', { blocking: false, metadata });
  await answerMessage(api, id, { ...COMPLETED, ...used(4, 2, 'small') });
  const users = new Map((await rowsOf('user')).map((row) => [row.user, row]));
  expect(users.get('ann')).toMatchObject({ messages: 1, dispatches: 1, input_tokens: 4, output_tokens: 2 });
  expect(users.has(null)).toBe(true);
  const credentials = await rowsOf('credential');
  const [known] = before.find(([credential]) => credential !== null) ?? [];
  expect(known).toMatch(/^cred_/);
  expect(credentials.find(({ credential }) => credential === known)?.messages).toBe(
    (new Map(before).get(known) ?? 0) + 1,
  );
});

test('a message that names no type counts to the type that has answered it, and is counted with it once', async () => {
  const counted = async () => {
    const [{ of_type, of_none } = { of_type: 0, of_none: 0 }] = await api.database.query<{
      of_type: number;
      of_none: number;
    }>(
      `SELECT coalesce(sum(messages) FILTER (WHERE key = 'worker'), 0)::integer AS of_type,
              coalesce(sum(messages) FILTER (WHERE key = ''), 0)::integer AS of_none
         FROM usage_by_key WHERE tenant_id = $1 AND kind = 'agent_type'`,
      [api.tenantId],
    );
    return [of_type, of_none];
  };
  await usageOf();
  const [ofType = 0, ofNone = 0] = await counted();
  const { id } = await api.client.send('hello', { blocking: false, metadata: { instance_id: 'worker-1' } });
  await usageOf();
  expect(await counted()).toEqual([ofType, ofNone + 1]);
  await answerMessage(api, id, COMPLETED);
  await usageOf();
  expect(await counted()).toEqual([ofType + 1, ofNone]);
});

test('every grouping has the same totals', async () => {
  const { totals } = await usageOf({ summary: true });
  expect(totals.messages).toBeGreaterThan(0);
  for (const group_by of ['agent_type', 'model', 'instance_id', 'day', 'session', 'user', 'credential']) {
    const rows = await rowsOf(group_by);
    for (const name of ['messages', 'dispatches', 'total_tokens', 'duration_ms'] as const) {
      const sum = rows.reduce((before, row) => before + row[name], 0);
      expect(sum, `${name} by ${group_by}`).toBe(totals[name]);
    }
  }
});

test('rows come sorted, in pages', async () => {
  const { id, contextId } = await send();
  await answerMessage(api, id, { ...COMPLETED, ...used(1_000_000, 0, 'largest') });
  const first = await usageOf({ group_by: 'session', page_size: 1 });
  expect(first).toMatchObject({ range: '7d', page: 1, rows: [{ session: contextId, input_tokens: 1_000_000 }] });
  expect(first.total_pages).toBe(first.count);
  const last = await usageOf({ group_by: 'session', page_size: 1, order: 'asc', page: first.count });
  expect(last.rows).toEqual(first.rows);
  const [day] = (await usageOf({ group_by: 'day', sort: 'key', order: 'asc', range: '24h' })).rows;
  expect(day?.day).toMatch(/^\d{4}-\d\d-\d\d$/);
  const injected = { sort: 'cost_usd; DROP TABLE events' };
  expect(await api.client.failure('/telemetry/get_usage', injected)).toBe('400 BAD_REQUEST');
});

test('cost is by the price of the model, else what the agent reports', async () => {
  const price = { model: 'priced', input_per_million: 2, output_per_million: 10 };
  expect((await setPrices(price)).prices).toEqual([price]);
  const costOf = (usage: object) =>
    totalsOf(async () => {
      const { id } = await send();
      await answerMessage(api, id, { ...COMPLETED, ...usage });
    });
  expect((await costOf(used(500_000, 100_000, 'priced', 99))).cost_usd).toBeCloseTo(2, 9);
  expect((await costOf(used(500_000, 100_000, 'free', 0.25))).cost_usd).toBeCloseTo(0.25, 9);
  expect((await setPrice('priced', null)).prices).toEqual([]);
  expect((await costOf(used(500_000, 100_000, 'priced'))).cost_usd).toBeCloseTo(0, 9);
});

const DOLLARS = 1_000_000;

/** A message whose agent asks, is answered and ends. @param meanwhile what happens before the usage of the question is added up, and after */
async function askedMessage(
  first: object,
  second: object,
  meanwhile: { rollUp: boolean; after?: () => Promise<unknown> },
) {
  const { id } = await send();
  await answerMessage(api, id, { ...ASKS, ...first });
  if (meanwhile.rollUp) await usageOf();
  await meanwhile.after?.();
  await api.client.post(`/messages/${id}/resolve`, { resolution: 'confirmed' });
  await answerMessage(api, id, { ...COMPLETED, ...second });
  return id;
}

test.each([true, false])('each turn costs what its own model costs, added up in between: %s', async (rollUp) => {
  const [large, small] = [`large-${rollUp}`, `small-${rollUp}`];
  await setPrice(large, 100);
  await setPrice(small, 1);
  const message = { id: '' };
  const { cost_usd } = await totalsOf(async () => {
    message.id = await askedMessage(used(DOLLARS, 0, large), used(DOLLARS, 0, small), { rollUp });
  });
  expect(cost_usd).toBeCloseTo(101, 9);
  const models = new Map((await rowsOf('model')).map((row) => [row.model, row]));
  expect(models.get(large)).toMatchObject({ messages: 0, total_tokens: DOLLARS, cost_usd: 100 });
  expect(models.get(small)).toMatchObject({ messages: 1, total_tokens: DOLLARS, cost_usd: 1 });
  const record = await api.client.ok('/messages/get_by_id', { message_id: message.id }, MessageGetByIdResponse);
  expect(record.message.usage).toEqual({
    ...{ input_tokens: 2 * DOLLARS, output_tokens: 0, model: small },
    by_model: [large, small].map((model) => ({ input_tokens: DOLLARS, output_tokens: 0, model })),
  });
});

test('what has been added up keeps its cost when the price changes, and when the price comes or goes', async () => {
  await setPrice('moving', 100);
  const turns = [used(DOLLARS, 0, 'moving', 7), used(DOLLARS, 0, 'moving', 3)] as const;
  const costWith = (price: number | null) =>
    totalsOf(() => askedMessage(...turns, { rollUp: true, after: () => setPrice('moving', price) }));
  expect((await costWith(1)).cost_usd).toBeCloseTo(101, 9);
  expect((await costWith(null)).cost_usd).toBeCloseTo(1 + 3, 9);
  expect((await costWith(50)).cost_usd).toBeCloseTo(7 + 50, 9);
});

test('a turn without a name of a model, and one with an empty one, are of no model', async () => {
  const none = { usage: { input_tokens: 5, output_tokens: 0 } };
  const { total_tokens } = await totalsOf(() => askedMessage(none, used(7, 0, ''), { rollUp: true }));
  expect(total_tokens).toBe(12);
});

test('no other tenant is in the report, whatever agents claim', async () => {
  const other = await api.clientOf(await api.otherTenant(), ['read']);
  const nothing = { rows: [], totals: { messages: 0, total_tokens: 0 } };
  expect(await other.ok('/telemetry/get_usage', {}, GetUsageResponse)).toMatchObject(nothing);
  const { id } = await send();
  const most = used(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 'boastful', Number.MAX_VALUE);
  await answerMessage(api, id, { ...COMPLETED, ...most });
  await send();
  expect((await usageOf()).totals.total_tokens).toBe(Number.MAX_SAFE_INTEGER);
});

/** A database of its own, so that nobody else moves its cursor. */
async function withMessages(count: number) {
  const own = await serveApi();
  await joinOnRecord(own, 'worker-1');
  for (let sent = 0; sent < count; sent += 1) {
    const { id } = await own.client.send('hello', { blocking: false });
    if (sent % 2 === 0) await answerMessage(own, id, { ...ASKS, ...used(10, 1, 'm') });
    if (sent % 2 === 0) await own.client.post(`/messages/${id}/resolve`, { resolution: 'confirmed' });
    await answerMessage(own, id, { ...COMPLETED, ...used(100, 10, 'm') });
  }
  while ((await positionEvents(own.db)) !== 0) {}
  const sums = () =>
    own.client.ok('/telemetry/get_usage', { summary: true }, GetUsageResponse).then(({ totals }) => totals);
  return { own, sums };
}

test('a roll-up that is cut off anywhere loses and doubles nothing', async () => {
  const { own, sums } = await withMessages(4);
  const client = await connect(own.database.url);
  for (;;) {
    // Each batch is done once and dies before its commit, and is done again.
    await client.query('BEGIN');
    const { rows } = await client.query('SELECT roll_up_usage(3, true) AS events');
    await client.query('ROLLBACK');
    const events = await rollUpUsage(own.db, { most: 3 });
    expect(events).toBe(rows[0].events);
    if (events === 0) break;
  }
  expect(await sums()).toMatchObject({ messages: 4, dispatches: 6, input_tokens: 420, output_tokens: 42 });
});

test('two nodes that add up at once count each event once', async () => {
  const { own, sums } = await withMessages(4);
  const beside = openDb({ url: own.database.url, log });
  cleanUp(() => beside.close());
  let taken = 0;
  const all = async (db: typeof beside) => {
    for (let events: number | null = null; events !== 0; ) {
      events = await rollUpUsage(db, { most: 2 });
      taken += events ?? 0;
    }
  };
  await Promise.all([all(own.db), all(beside), all(own.db)]);
  const written = await own.database.value('SELECT count(*)::int FROM event_groups');
  expect(taken).toBe(written);
  expect(await sums()).toMatchObject({ messages: 4, dispatches: 6, input_tokens: 420, output_tokens: 42 });
  expect(await own.database.query('SELECT * FROM counted_usage')).toEqual([]);
});

test('a batch of tool calls whose commit was not heard of counts once', async () => {
  const lost = { times: 1 };
  const system: typeof api.db.system = async (work) => {
    const result = await api.db.system(work);
    if (lost.times-- > 0) throw new Error('the connection broke after the commit');
    return result;
  };
  const tools = new ToolUsage({ system }, log);
  const call = { tenant_id: api.tenantId, agent_type: 'worker', instance_id: 'worker-1', session_id: 'ses_tools' };
  const { tool_calls } = await totalsOf(async () => {
    tools.count(call);
    tools.count(call);
    await expect(tools.flush()).rejects.toThrow('after the commit');
    tools.count({ ...call, session_id: undefined });
    await tools.stop();
  });
  expect(tool_calls).toBe(3);
  const row = (await rowsOf('session')).find(({ session }) => session === 'ses_tools');
  expect(row).toMatchObject({ tool_calls: 2, messages: 0 });
});
