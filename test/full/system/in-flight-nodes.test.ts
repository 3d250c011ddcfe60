import { expect, test } from 'vitest';
import { AgentGetByIdResponse, AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { LIMITS } from '../../../contracts/limits.js';
import { hostedAgent, message } from '../../mesh/hosted/hosted-agent.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { dispatched, echo, type RawAgent } from '../../setup/agent.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { FAST_PATH } from '../../setup/platform/paths.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { until } from '../../setup/until.js';

const MAX = LIMITS.dispatchesInFlightPerConnection;
const AT_ONCE = 32;
const ALL_MS = 120_000;
const redis = await redisServer();
const shared = await startPlatform({ ...FAST_PATH.env, REDIS_URL: redis.url });
/** Two nodes with every role. */
const first = shared.platform;
const second = await shared.startPeer();

const to = (agentType: string) => ({ metadata: { agent_type: agentType }, blocking: false });

/** Sends so many messages through a node without waiting for their ends, and expects that none is refused. */
async function sendMany(node: TestPlatform, agentType: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - sent) }, () => node.client.rpc('hold', to(agentType)));
    expect((await Promise.all(some)).map(({ status }) => status)).toEqual(some.map(() => 200));
  }
}

async function isStatus(instanceId: string, status: string): Promise<boolean> {
  const { agent } = await first.client.ok('/agents/get_by_id', { instance_id: instanceId }, AgentGetByIdResponse);
  return agent.status === status;
}

async function expectRefused(node: TestPlatform, agentType: string): Promise<void> {
  const refused = await node.client.rpc('one more', to(agentType));
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
}

/** Dispatches that the nodes have at an agent type, the most first. */
async function sentByNodes(agentType: string): Promise<number[]> {
  const rows = await shared.database.query<{ sent: number }>(
    `SELECT count(*)::int AS sent FROM dispatches WHERE agent_type = $1 AND state = 'sent' GROUP BY mesh_id ORDER BY 1 DESC`,
    [agentType],
  );
  return rows.map(({ sent }) => sent);
}

/** How often a node had no room for a dispatch that it was given. */
async function refusedBy(agentType: string): Promise<number> {
  const released = `SELECT 1 FROM dispatches WHERE agent_type = $1 AND state = 'released'`;
  return (await shared.database.query(released, [agentType])).length;
}

async function messagesOf(agentType: string): Promise<Record<string, number>> {
  const rows = await shared.database.query<{ state: string; count: number }>(
    'SELECT state, count(*)::int AS count FROM messages WHERE want_agent_type = $1 GROUP BY state',
    [agentType],
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

/** What a node itself counts as in flight. */
async function inFlight(node: TestPlatform): Promise<number> {
  const [, url = ''] = /"metrics_url":"([^"]+)"/.exec(node.log()) ?? [];
  const [, count] = /^fleet_dispatches_in_flight (\d+)$/m.exec(await (await fetch(url)).text()) ?? [];
  return Number(count);
}

async function untilIdle(): Promise<void> {
  await until(async () => (await inFlight(first)) + (await inFlight(second)) === 0, { what: 'nothing in flight' });
}

const dispatchesOf = (agent: RawAgent) => agent.received.filter(({ type }) => type === 'dispatch');

test('a hosted agent gets its maximum from each node; what one has no room for another sends, and then it is 429', async () => {
  const answers: (() => void)[] = [];
  const { url } = await hostedAgent({
    'message/send': (reply) => void answers.push(() => reply.result(message('at last'))),
  });
  const agent = { instance_id: 'hosted-1', agent_type: 'hosted', deployment_mode: 'hosted', public_url: url };
  const body = { ...agent, agent_card: {}, max_concurrent_sessions: 0 };
  await first.client.ok('/agents/register', body, AgentRegisterResponse);

  await sendMany(first, 'hosted', MAX);
  await until(() => answers.length === MAX, { what: 'the requests of the first node', timeoutMs: ALL_MS });
  expect(await sentByNodes('hosted')).toEqual([MAX]);
  // Through the node that is full.
  await sendMany(first, 'hosted', AT_ONCE);
  await until(() => answers.length === MAX + AT_ONCE, { what: 'those that the second node sends', timeoutMs: ALL_MS });
  expect(await sentByNodes('hosted')).toEqual([MAX, AT_ONCE]);
  // None is tried again and again where there is no room.
  expect(await refusedBy('hosted')).toBeLessThanOrEqual(AT_ONCE);

  await sendMany(second, 'hosted', MAX - AT_ONCE);
  await until(() => answers.length === 2 * MAX, { what: 'the requests of both nodes', timeoutMs: ALL_MS });
  await until(() => isStatus('hosted-1', 'busy'), { what: 'the marks of both nodes' });
  for (const node of [first, second]) await expectRefused(node, 'hosted');
  expect(await messagesOf('hosted')).toEqual({ working: 2 * MAX });

  for (const answer of answers.splice(0)) answer();
  await until(async () => (await messagesOf('hosted')).completed === 2 * MAX, { what: 'the ends', timeoutMs: ALL_MS });
  await untilIdle();
  await until(async () => (await second.client.rpc('one more', to('hosted'))).status === 200, { what: 'room again' });
  await until(() => answers.length === 1, { what: 'its request' });
  answers[0]?.();
  await untilIdle();
}, 300_000);

test('a connected agent with its maximum gets none while one on another node has room; then it is 429', async () => {
  const open = { agentType: 'held', maxConcurrentSessions: 0 };
  const full = await joinAgent(first, { ...open, instanceId: 'held-1' });
  await sendMany(first, 'held', MAX);
  await until(() => isStatus('held-1', 'busy'), { what: 'the mark' });
  for (const node of [first, second]) await expectRefused(node, 'held');

  const other = await joinAgent(second, { ...open, instanceId: 'held-2' }, echo);
  for (const node of [first, second]) {
    const task = await node.client.send('one more', { ...to('held'), blocking: true });
    expect(task.status.state).toBe('completed');
  }
  expect(dispatchesOf(other)).toHaveLength(2);
  other.close();
  await until(() => isStatus('held-2', 'offline'), { what: 'the end of the other agent' });
  await expectRefused(second, 'held');

  expect(dispatchesOf(full)).toHaveLength(MAX);
  for (const frame of dispatchesOf(full)) dispatched(full, frame).result('done');
  await until(async () => (await messagesOf('held')).completed === MAX + 2, { what: 'the ends', timeoutMs: ALL_MS });
  await untilIdle();
  full.close();
}, 300_000);
