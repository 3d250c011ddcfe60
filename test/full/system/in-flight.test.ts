import { expect, test } from 'vitest';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { LIMITS } from '../../../contracts/limits.js';
import { hostedAgent, message } from '../../mesh/hosted/hosted-agent.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { dispatched, echo, serve } from '../../setup/agent.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { until } from '../../setup/until.js';
import { dispatchesTo, joinType, to, untilStatus } from '../../system/fixture.js';

const MAX = LIMITS.dispatchesInFlightPerConnection;
const AT_ONCE = 32;
const ALL_MS = 120_000;
const redis = await redisServer();
const shared = await startPlatform({ REDIS_URL: redis.url });
/** Two nodes with every role. */
const first = shared.platform;
const second = await shared.startPeer();

/** Sends so many messages through a node without waiting for their ends. @returns how many were taken; the others are refused with 429 */
async function sendMany(node: TestPlatform, agentType: string, count: number): Promise<number> {
  const statuses: number[] = [];
  while (statuses.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - statuses.length) }, () =>
      node.client.rpc('hold', { ...to(agentType), blocking: false }),
    );
    statuses.push(...(await Promise.all(some)).map(({ status }) => status));
  }
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return statuses.filter((status) => status === 200).length;
}

async function expectRefused(agentType: string, messageId?: string): Promise<void> {
  for (const { client } of [first, second]) {
    const refused = await client.rpc('one more', {
      ...to(agentType),
      blocking: false,
      ...(messageId && { messageId }),
    });
    expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  }
}

/** How many messages to a type are in each state. */
async function messagesTo(agentType: string): Promise<Record<string, number>> {
  const rows = await shared.database.query<{ state: string; count: number }>(
    'SELECT state, count(*)::int AS count FROM messages WHERE want_agent_type = $1 GROUP BY state',
    [agentType],
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

const untilCompleted = (agentType: string, count: number) =>
  until(async () => (await messagesTo(agentType)).completed === count, { what: `${count} ends`, timeoutMs: ALL_MS });

/** Dispatches in this state, of the nodes that have any, the most first. */
async function byNodes(agentType: string, state: string): Promise<number[]> {
  const rows = await shared.database.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM dispatches WHERE agent_type = $1 AND state = $2 GROUP BY mesh_id ORDER BY 1 DESC`,
    [agentType, state],
  );
  return rows.map(({ count }) => count);
}

test('a hosted agent gets its maximum from each node; what one has no room for another sends, and then it is 429', async () => {
  const answers: (() => void)[] = [];
  const server = await hostedAgent({
    'message/send': (reply) => void answers.push(() => reply.result(message('at last'))),
  });
  const quick = await hostedAgent({ 'message/send': (reply) => reply.result(message('quick')) });
  for (const [agent_type, { url }] of Object.entries({ hosted: server, quick })) {
    const body = { instance_id: `${agent_type}-1`, agent_type, public_url: url, agent_card: {} };
    await first.client.ok('/agents/register', { ...body, max_concurrent_sessions: 0 }, AgentRegisterResponse);
  }
  const untilAsked = (count: number) =>
    until(() => answers.length === count, { what: `${count} requests`, timeoutMs: ALL_MS });

  expect(await sendMany(first, 'hosted', MAX)).toBe(MAX);
  await untilAsked(MAX);
  expect(await byNodes('hosted', 'sent')).toEqual([MAX]);
  expect(await sendMany(first, 'hosted', AT_ONCE)).toBe(AT_ONCE); // through the node that is full
  await untilAsked(MAX + AT_ONCE);
  expect(await byNodes('hosted', 'sent')).toEqual([MAX, AT_ONCE]);
  // None is tried again and again where there is no room.
  const [refusals = 0] = await byNodes('hosted', 'released');
  expect(refusals).toBeLessThanOrEqual(AT_ONCE);

  expect(await sendMany(second, 'hosted', MAX - AT_ONCE)).toBe(MAX - AT_ONCE);
  await untilAsked(2 * MAX);
  await untilStatus(first.client, 'hosted-1', 'busy');
  await expectRefused('hosted');
  expect(await messagesTo('hosted')).toEqual({ working: 2 * MAX });
  expect((await first.client.send('hello', to('quick'))).status.state).toBe('completed');

  for (const answer of answers.splice(0)) answer();
  await untilCompleted('hosted', 2 * MAX);
  const room = async () => (await second.client.rpc('one more', { ...to('hosted'), blocking: false })).status === 200;
  await until(room, { what: 'room again' });
  await untilAsked(1);
  answers[0]?.();
}, 300_000);

test('a connected agent with its maximum gets none while one on another node has room; then it is 429, and a repeat finds its message', async () => {
  const full = await joinType(first, 'held');
  await sendMany(first, 'held', MAX);
  await until(() => dispatchesTo(full).length === MAX, { what: 'the dispatches' });
  await untilStatus(first.client, 'held-1', 'busy');
  await expectRefused('held', 'again');

  const options = { instanceId: 'held-2', agentType: 'held', maxConcurrentSessions: 0 };
  const other = await joinAgent(second, options, echo);
  for (const { client } of [first, second])
    expect((await client.send('one more', to('held'))).status.state).toBe('completed');
  expect(dispatchesTo(other)).toHaveLength(2);
  other.close();
  await untilStatus(first.client, 'held-2', 'offline');
  await expectRefused('held', 'again');

  // Room for one: the next message gets it, and the one after it is refused again.
  const [held] = dispatchesTo(full);
  if (held) dispatched(full, held).result('done');
  const again = { ...to('held'), messageId: 'again', blocking: false };
  await until(async () => (await first.client.rpc('one more', again)).status === 200, { what: 'room' });
  await until(() => dispatchesTo(full).length === MAX + 1, { what: 'the next dispatch' });
  await untilStatus(first.client, 'held-1', 'busy');
  expect((await second.client.rpc('one more', again)).status).toBe(200);
  await expectRefused('held');
  for (const frame of dispatchesTo(full)) dispatched(full, frame).result('done');
  await untilCompleted('held', MAX + 3);
}, 300_000);

test('more messages at once than an agent may have are refused, or wait for room: none fails, and it never has more', async () => {
  const agent = await joinType(first, 'burst');
  await sendMany(first, 'burst', MAX - AT_ONCE / 2);
  const accepted = MAX - AT_ONCE / 2 + (await sendMany(first, 'burst', AT_ONCE));
  await until(() => dispatchesTo(agent).length === MAX, { what: 'the dispatches' });
  const other = await joinAgent(first, { instanceId: 'burst-2', agentType: 'burst', maxConcurrentSessions: 0 }, echo);
  await until(() => dispatchesTo(other).length === accepted - MAX, { what: 'those that waited', timeoutMs: ALL_MS });
  expect(dispatchesTo(agent)).toHaveLength(MAX);
  for (const frame of dispatchesTo(agent)) dispatched(agent, frame).result('done');
  serve(agent, echo);
  await untilCompleted('burst', accepted);
}, 180_000);
