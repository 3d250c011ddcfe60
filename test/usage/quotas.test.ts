import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { TenantLimitsResponse } from '../../contracts/api/tenants/tenants.js';
import { ErrorBody, type Scope } from '../../contracts/primitives.js';
import { FleetClient } from '../../sdk/index.js';
import { usedUp } from '../../usage/quota-meter.js';
import { rollUpAll } from '../../usage/roll-up.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../api/moving.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { insertAgent, textMessage } from '../setup/core.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { until } from '../setup/until.js';

const FULL: Scope[] = ['full'];
const UNLIMITED = { messages_per_day: null, tokens_per_day: null, cost_usd_per_month: null };
const api = await serveApi();
const beside = await serveApi({ beside: { database: api.database } });

/** A tenant with an agent, as a caller of each node. */
async function tenant(nodes: ServedApi[] = [api]): Promise<ApiClient[]> {
  const tenantId = await api.otherTenant();
  await insertAgent(api.database, { tenant_id: tenantId, instance_id: 'worker-1' });
  return Promise.all(nodes.map((node) => node.clientOf(tenantId, FULL)));
}
const setLimits = (client: ApiClient, limits: object) => client.ok('/tenants/set_limits', limits, TenantLimitsResponse);
const rpc = (client: ApiClient, messageId: string = randomUUID()) =>
  client.rpc('hello', { blocking: false, messageId });
const statusOf = async (client: ApiClient) => (await rpc(client)).status;

test.each([
  ['nothing is limited', {}, null],
  ['there is room', { messages_per_day: 11, tokens_per_day: 101, cost_usd_per_month: 1.01 }, null],
  ['messages are used up', { messages_per_day: 10 }, 'its 10 messages for today'],
  ['tokens are used up', { tokens_per_day: 99 }, 'its 99 tokens for today'],
  ['the budget is used up too, which takes longer', { messages_per_day: 1, cost_usd_per_month: 1 }, 'its budget of 1'],
  ['none is allowed', { messages_per_day: 0 }, 'its 0 messages for today'],
])('%s', (_what, limits, text) => {
  const periods = { day_ends_at: new Date(1), month_ends_at: new Date(2), day_left_ms: 5, month_left_ms: 50 };
  const used = { tenant_id: 't', kind: '' as const, key: '', messages: 10, tokens: 100, cost_usd: 1 };
  const found = usedUp({ ...UNLIMITED, ...used, ...periods, ...limits }, 1_000);
  if (text === null) expect(found).toBeNull();
  else {
    expect(found?.text).toContain(text);
    expect(found?.endsAtMs).toBe(text.includes('budget') ? 1_050 : 1_005);
  }
});

test('the last message of the day is accepted and the next one refused, which says until when', async () => {
  const [client] = (await tenant()) as [ApiClient];
  const { limits, used } = await setLimits(client, { messages_per_day: 3 });
  expect(limits).toEqual({ ...UNLIMITED, messages_per_day: 3 });
  expect(used).toEqual({ messages: 0, tokens: 0, cost_usd: 0 });
  const first = randomUUID();
  expect((await rpc(client, first)).status).toBe(200);
  expect([await statusOf(client), await statusOf(client)]).toEqual([200, 200]);
  const refused = await rpc(client);
  expect(refused.status).toBe(429);
  expect(ErrorBody.parse(refused.body)).toMatchObject({ code: 'QUOTA_EXCEEDED' });
  const { day_ends_at, used: now } = await client.ok('/tenants/get_limits', {}, TenantLimitsResponse);
  expect(ErrorBody.parse(refused.body).error).toContain(day_ends_at);
  expect(now.messages).toBe(3);
  const leftSeconds = (Date.parse(day_ends_at) - Date.now()) / 1_000;
  const retryAfter = Number(refused.headers.get('retry-after'));
  expect(Math.abs(retryAfter - leftSeconds)).toBeLessThan(60);
  // A repeat of what was accepted is no new message.
  expect((await rpc(client, first)).result).toMatchObject({ kind: 'task' });
  await setLimits(client, { messages_per_day: 4 });
  expect([await statusOf(client), await statusOf(client)]).toEqual([200, 429]);
  await setLimits(client, { messages_per_day: null });
  expect([await statusOf(client), await statusOf(client)]).toEqual([200, 200]);
});

test('each user, credential and agent type has quotas of its own', async () => {
  const tenantId = await api.otherTenant();
  for (const [instance_id, agent_type] of [
    ['worker-1', 'worker'],
    ['painter-1', 'painter'],
  ] as const)
    await insertAgent(api.database, { tenant_id: tenantId, instance_id, agent_type });
  const [client, other] = (await Promise.all([1, 2].map(() => api.clientOf(tenantId, FULL)))) as [ApiClient, ApiClient];
  const sent = async (metadata: object, by = client, contextId?: string) => {
    const about = { agent_type: 'worker', ...metadata };
    const { status, body } = await by.rpc('hello', { blocking: false, metadata: about, contextId });
    return status === 429 ? ErrorBody.parse(body).error : status;
  };
  const { limits } = await setLimits(client, { per_user: { messages_per_day: 2, tokens_per_day: 900 } });
  expect(limits).toMatchObject({ messages_per_day: null, per_user: { messages_per_day: 2, tokens_per_day: 900 } });
  const room = await client.send('hello', { blocking: false, metadata: { agent_type: 'worker', user_id: 'ann' } });
  // What a session says of the user counts as well.
  expect(await sent({}, client, room.contextId)).toBe(200);
  expect(await sent({ user_id: 'ann' })).toMatch(/^This user has used up .* 2 messages for today/);
  expect(await sent({}, other, room.contextId)).toMatch(/^This user/);
  expect([await sent({ user_id: 'bob' }), await sent({})]).toEqual([200, 200]);
  const many = await Promise.all(Array.from({ length: 8 }, () => sent({ user_id: 'cid' })));
  expect(many.filter((status) => status === 200)).toHaveLength(2);

  await setLimits(client, { per_user: null, per_agent_type: { messages_per_day: 1 } });
  expect(await sent({ agent_type: 'painter' })).toBe(200);
  expect(await sent({ agent_type: 'painter' })).toMatch(/^The agent type painter/);
  expect(await sent({ agent_type: undefined, instance_id: 'painter-1' })).toMatch(/^The agent type painter/);
  expect(await sent({})).toMatch(/^The agent type worker/);

  const per_credential = { messages_per_day: 0 };
  const { limits: last } = await setLimits(client, { per_agent_type: { messages_per_day: null }, per_credential });
  expect(last).toEqual({ ...UNLIMITED, per_credential });
  expect([await sent({}), await sent({}, other)]).toEqual(Array(2).fill(expect.stringMatching(/^This credential/)));
  await setLimits(client, { per_credential: null });
  expect(await sent({})).toBe(200);
});

test('a message that names a skill only has to have room in every type that has it', async () => {
  const tenantId = await api.otherTenant();
  for (const [agent_type, skill] of [
    ['painter', 'paint'],
    ['artist', 'paint'],
    ['writer', 'write'],
  ] as const)
    await insertAgent(api.database, {
      ...{ tenant_id: tenantId, instance_id: `${agent_type}-1`, agent_type, skills: JSON.stringify([{ id: skill }]) },
    });
  const client = await api.clientOf(tenantId, FULL);
  const sent = async (metadata: Record<string, string>) =>
    (await client.rpc('hello', { blocking: false, metadata })).status;
  await setLimits(client, { per_agent_type: { messages_per_day: 1 } });
  expect(await sent({ agent_type: 'painter' })).toBe(200);
  expect(await sent({ skill_id: 'paint' })).toBe(429);
  expect(await sent({ skill_id: 'write' })).toBe(200);
  expect(await sent({ agent_type: 'artist' })).toBe(200);
});

test('the ceiling that an operator has set bounds a tenant that sets no limit of its own', async () => {
  const tenantId = await api.otherTenant();
  await insertAgent(api.database, { tenant_id: tenantId, instance_id: 'worker-1' });
  const client = await api.clientOf(tenantId, FULL);
  await api.database.query('INSERT INTO tenant_ceilings (tenant_id, messages_per_day) VALUES ($1, 1)', [tenantId]);
  await until(async () => (await statusOf(client)) === 429, { what: 'the refusal' });
  await setLimits(client, { messages_per_day: null });
  expect(await statusOf(client)).toBe(429);
  await api.database.query('UPDATE tenant_ceilings SET messages_per_day = NULL WHERE tenant_id = $1', [tenantId]);
  await until(async () => (await statusOf(client)) === 200, { what: 'the end of the ceiling' });
});

test('of many messages at once exactly those are accepted that the quota has room for', async () => {
  const [client] = (await tenant()) as [ApiClient];
  await setLimits(client, { messages_per_day: 7 });
  const statuses = await Promise.all(Array.from({ length: 25 }, () => statusOf(client)));
  expect(statuses.filter((status) => status === 200)).toHaveLength(7);
  expect(statuses.filter((status) => status === 429)).toHaveLength(18);
});

test('a quota holds while usage cannot be added up, and no other tenant notices', async () => {
  const clients = (await Promise.all([tenant(), tenant(), tenant()])).flat();
  const [client, unread, unlimited] = clients as [ApiClient, ApiClient, ApiClient];
  await setLimits(client, { messages_per_day: 3 });
  // This process has read nothing of it yet.
  await setLimits(unread, { tokens_per_day: 5 });
  expect(await statusOf(client)).toBe(200);
  await rollUpAll(api.core.db); // the cursor has its row
  await api.core.db.system(async (tx) => {
    await tx.query('SET LOCAL idle_in_transaction_session_timeout = 0');
    await tx.query("SELECT 1 FROM event_cursors WHERE consumer = 'usage' FOR UPDATE");
    const many = Promise.all(Array.from({ length: 6 }, () => statusOf(client)));
    const [statuses, refused, free] = await Promise.all([many, rpc(unread), statusOf(unlimited)]);
    expect(statuses.sort()).toEqual([200, 200, 503, 503, 503, 503]);
    expect([refused.status, refused.headers.get('retry-after'), free]).toEqual([503, '1', 200]);
  });
  expect([await statusOf(client), await statusOf(unread)]).toEqual([429, 200]);
});

test('another node hears of a limit and of what was sent elsewhere', async () => {
  const [here, there] = (await tenant([api, beside])) as [ApiClient, ApiClient];
  await setLimits(here, { messages_per_day: 2 });
  expect([await statusOf(here), await statusOf(here)]).toEqual([200, 200]);
  await until(async () => (await statusOf(there)) === 429, { what: 'a refusal by the other node' });
});

test('beyond a quota streams are refused like sends, and questions are answered, also by message/send', async () => {
  const { client } = api;
  await joinOnRecord(api, 'asker-1');
  const asked = async () => {
    const { id } = await client.send('hello', { blocking: false });
    await answerMessage(api, id, ASKS);
    return id;
  };
  const [one, two] = [await asked(), await asked()];
  await setLimits(client, { messages_per_day: 0 });
  onTestFinished(async () => void (await setLimits(client, { messages_per_day: null })));
  for (const method of ['message/send', 'message/stream']) {
    const refused = await client.call(method, { message: textMessage() });
    expect([refused.status, ErrorBody.parse(refused.body).code]).toEqual([429, 'QUOTA_EXCEEDED']);
  }
  expect((await client.post(`/messages/${one}/resolve`, { resolution: 'confirmed' })).status).toBe(200);
  const answer = await client.rpc('approved', { taskId: two, blocking: false });
  expect(answer.result).toMatchObject({ id: two });
  for (const id of [one, two]) {
    await answerMessage(api, id, COMPLETED);
    expect((await client.message(id)).state).toBe('completed');
  }
});

test('tokens and cost refuse as soon as they are added up, and only the tenant that used them', async () => {
  await joinOnRecord(api, 'worker-1');
  const { client } = api;
  await setLimits(client, { tokens_per_day: 100 });
  const { id } = await client.send('hello', { blocking: false });
  const usage = { input_tokens: 60, output_tokens: 40, cost_usd: 0.5 };
  await answerMessage(api, id, { ...COMPLETED, usage });
  await until(async () => (await statusOf(client)) === 429, { what: 'a refusal for tokens' });
  const [other] = (await tenant()) as [ApiClient];
  await setLimits(other, { tokens_per_day: 100 });
  expect(await statusOf(other)).toBe(200);
  await setLimits(client, { tokens_per_day: null, cost_usd_per_month: 0.5 });
  const refused = await rpc(client);
  expect(refused.status).toBe(429);
  expect(ErrorBody.parse(refused.body).error).toContain('its budget of 0.5 US dollars for this month');
});

test('the budget of a month counts all its days, and none before', async () => {
  const tenantId = await api.otherTenant();
  const { database } = api;
  await database.query(
    `INSERT INTO usage_days (tenant_id, day, messages, tokens, cost_usd)
     SELECT DISTINCT $1, day, 1, 1, 2 FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS today) t,
       LATERAL (VALUES (today), (date_trunc('month', today)::date), (date_trunc('month', today)::date - 1)) AS d (day)`,
    [tenantId],
  );
  const used = 'SELECT cost_usd FROM quotas_of(ARRAY[$1])';
  const days = `SELECT 2 * (count(*) - 1)::float8 FROM usage_days WHERE tenant_id = $1`;
  const counted = await database.value(used, [tenantId]);
  expect(counted).toBeGreaterThan(0);
  expect(counted).toBe(await database.value(days, [tenantId]));
});

test('the client of the SDK does not send again what a quota refused', async () => {
  const credential = await api.credentialOf(await api.otherTenant(), FULL);
  const { client_id: clientId, client_secret: clientSecret } = credential;
  const client = new FleetClient({ url: api.baseUrl, clientId, clientSecret });
  onTestFinished(() => client.close());
  await client.tenants.setLimits({ messagesPerDay: 0 });
  await expect(client.send('hello')).rejects.toMatchObject({ status: 429, code: 'QUOTA_EXCEEDED' });
});
