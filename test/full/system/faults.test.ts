import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { ResolveResponse } from '../../../contracts/api/messages.js';
import { LIMITS } from '../../../contracts/limits.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import type { Dispatched } from '../../setup/agent.js';
import { freshDatabase } from '../../setup/database.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { until } from '../../setup/until.js';
import { byText, dispatchesTo, joinType, looksOf, to } from '../../system/fixture.js';

const CLOCK = fileURLToPath(new URL('../../setup/platform/shifted-clock.mjs', import.meta.url));

const redis = await redisServer();
const temporal = await TcpProxy.to(`http://${inject('temporalAddress')}`);
const database = await freshDatabase();
const postgres = await TcpProxy.to(database.url);
const ways = { TEMPORAL_ADDRESS: `127.0.0.1:${temporal.port}`, DATABASE_URL: postgres.urlOf(database.url) };
const settings = { ...ways, REDIS_URL: redis.url, DATABASE_TIMEOUT_MS: '4000', QUEUE_WAIT_MS: '120000' };
const shared = await startPlatform(settings, { database });
const { platform } = shared;
const { client } = platform;
const { hasWorkflow, dispatchStates } = looksOf(shared);

const confirm = (node: TestPlatform, id: string) =>
  node.client.ok(`/messages/${id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);

test('a Temporal that answers slowly slows what needs it, and nothing else', async () => {
  const held: Dispatched[] = [];
  const agent = await joinType(platform, 'slow', byText(held));
  temporal.latencyMs = 500;
  const lasting = await client.send('hold', { ...to('slow'), blocking: false });
  const asked = await client.send('ask', to('slow'));
  await confirm(platform, asked.id);
  const quick = await Promise.all(Array.from({ length: 20 }, (_, index) => client.send(`quick ${index}`, to('slow'))));
  expect(new Set(quick.map(({ status }) => status.state))).toEqual(new Set(['completed']));
  expect(await Promise.all(quick.map(({ id }) => hasWorkflow(id)))).toEqual(quick.map(() => false));
  await until(() => hasWorkflow(lasting.id), { what: 'the workflow of the message that lasts' });
  for (const dispatch of held) dispatch.result('at last');
  for (const { id } of [lasting, asked]) await client.untilState(id, 'completed');
  temporal.latencyMs = 0;
  agent.close();
});

test('a Postgres that fails over while connections hang: every call ends with a 503, agents stay, and all goes on by itself', async () => {
  const held: Dispatched[] = [];
  const agent = await joinType(platform, 'steady', byText(held));
  const task = await client.send('hold', { ...to('steady'), blocking: false });
  await until(() => held.length === 1, { what: 'the dispatch' });
  expect((await client.post('/sessions/get', {})).status).toBe(200);

  postgres.silence();
  const NUMBERS = [1, 2, 3, 4, 5];
  const send = (index: number) => client.rpc(`text ${index}`, { ...to('steady'), messageId: `sent-${index}` });
  const health = client.get('/health');
  const reads = [client.post('/messages/get_by_id', { message_id: task.id }), client.post('/sessions/get', {})];
  for (const { status, body, headers } of await Promise.all([...NUMBERS.map(send), ...reads])) {
    expect([status, (body as { code: string }).code]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  expect(await health).toMatchObject({ status: 503, body: { checks: { database: 'down' } } });
  held[0]?.result('kept');
  postgres.isSilent = false;

  expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('kept');
  for (const index of NUMBERS) {
    const answer = await until(async () => {
      const again = await send(index);
      return again.status === 200 && again;
    });
    expect((answer.result as Task).status.state).toBe('completed');
  }
  await until(async () => (await client.get('/health?ready=full')).status === 200, { what: 'health' });
  expect(agent.isOpen).toBe(true);
  expect(agent.received.filter(({ type }) => type === 'welcome')).toHaveLength(1);
  agent.close();
});

test('nodes whose clocks are 5 s ahead and 5 s behind are as good as any other', async () => {
  const shifted = (shiftMs: number) =>
    shared.startPeer({ env: { NODE_OPTIONS: `--import=${CLOCK}`, TEST_CLOCK_SHIFT_MS: String(shiftMs) } });
  const [ahead, behind] = await Promise.all([shifted(5_000), shifted(-5_000)]);
  const clockOf = async ({ client }: TestPlatform) => {
    const { body } = await client.get('/nowhere');
    return Date.parse((body as { timestamp: string }).timestamp);
  };
  const atBehind = await clockOf(behind);
  expect((await clockOf(ahead)) - atBehind).toBeGreaterThanOrEqual(10_000);
  const held: Dispatched[] = [];
  const agents = [await joinType(ahead, 'on-ahead', byText(held)), await joinType(behind, 'on-behind', byText(held))];

  // Tokens of one count at the other, and messages find their way over both.
  const request = { method: 'POST', headers: await ahead.client.headers(), body: '{}' };
  expect((await fetch(new URL('/messages/get', behind.baseUrl), request)).status).toBe(200);
  for (const node of [ahead, behind, platform])
    for (const type of ['on-ahead', 'on-behind']) {
      // The first one may come before the processes have found each other.
      await until(async () => {
        const task = await node.client.send('quick', to(type));
        expect([task.status.state, await dispatchStates(task.id)]).toEqual(['completed', ['completed']]);
        return !(await hasWorkflow(task.id));
      });
    }

  const pairs = [
    [ahead, 'on-behind', behind],
    [behind, 'on-ahead', ahead],
  ] as const;
  for (const [node, type, other] of pairs) {
    const asked = await node.client.send('ask', to(type));
    await confirm(other, asked.id);
    await node.client.untilState(asked.id, 'completed');
    const lasting = await node.client.send('hold', { ...to(type), blocking: false });
    await until(() => hasWorkflow(lasting.id), { what: 'the workflow' });
    for (const dispatch of held.splice(0)) dispatch.result('at last');
    await other.client.untilState(lasting.id, 'completed');
    expect(await dispatchStates(lasting.id)).toEqual(['completed']);
  }
  // An answer comes in a dispatch that was taken from a queue, whose deadline is the database's.
  for (const { payload } of agents.flatMap(dispatchesTo)) {
    expect(payload.deadline_ms).toBeLessThanOrEqual(LIMITS.deadlineMsDefault);
    expect(payload.deadline_ms).toBeGreaterThan(LIMITS.deadlineMsDefault - 3_000);
  }
  for (const node of [platform, ahead, behind]) expect(node.log()).not.toContain('presumed dead');
  for (const agent of agents) agent.close();
});
