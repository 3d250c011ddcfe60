import { describe, expect, test } from 'vitest';
import { AgentGetByIdResponse, AgentRegisterResponse } from '../../contracts/api/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import { hostedAgent, message } from '../mesh/hosted/hosted-agent.js';
import { dispatched, echo, type RawAgent, serve } from '../setup/agent.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { FAST_PATH } from '../setup/platform/paths.js';
import { startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

const MAX = LIMITS.dispatchesInFlightPerConnection;
const AT_ONCE = 32;
const fast = await startPlatform(FAST_PATH.env);

type Shared = Awaited<ReturnType<typeof startPlatform>>;

/** Sends so many messages to the type without waiting for their ends. @returns the answers' statuses */
async function sendMany({ platform }: Shared, agentType: string, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - sent) }, () =>
      platform.client.rpc('hold', { metadata: { agent_type: agentType }, blocking: false }),
    );
    statuses.push(...(await Promise.all(some)).map(({ status }) => status));
  }
  return statuses;
}

const dispatchesOf = (agent: RawAgent) => agent.received.filter(({ type }) => type === 'dispatch');

/** The agent's status as the API shows it: one without room shows busy. */
async function isStatus({ platform }: Shared, instanceId: string, status: string): Promise<boolean> {
  const { agent } = await platform.client.ok('/agents/get_by_id', { instance_id: instanceId }, AgentGetByIdResponse);
  return agent.status === status;
}

/** Joins an agent that never answers by itself, and gives it the most dispatches that it may have. */
async function fill(shared: Shared, agentType: string): Promise<RawAgent> {
  const instanceId = `${agentType}-1`;
  const agent = await joinAgent(shared.platform, { instanceId, agentType, maxConcurrentSessions: 0 });
  await sendMany(shared, agentType, MAX);
  await until(() => dispatchesOf(agent).length === MAX, { what: 'the dispatches' });
  await until(() => isStatus(shared, instanceId, 'busy'), { what: 'the saturation' });
  return agent;
}

async function messagesOf({ database }: Shared, agentType: string): Promise<Record<string, number>> {
  const rows = await database.query<{ state: string; count: string }>(
    'SELECT state, count(*) FROM messages WHERE want_agent_type = $1 GROUP BY state',
    [agentType],
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]));
}

describe('an agent with all the dispatches that it may have', () => {
  test('gets none while another has room; new messages are refused when none has', async () => {
    const shared = fast;
    const { client } = shared.platform;
    const agent = await fill(shared, 'held');
    const first = { metadata: { agent_type: 'held' }, messageId: 'again', blocking: false };

    const refused = await client.rpc('one more', first);
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({ code: 'RATE_LIMITED' });
    expect(JSON.stringify(refused.body)).toContain('start another agent of the type held');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await messagesOf(shared, 'held')).toEqual({ working: MAX });

    const other = await joinAgent(
      shared.platform,
      { instanceId: 'held-2', agentType: 'held', maxConcurrentSessions: 0 },
      echo,
    );
    expect((await client.send('one more', { metadata: { agent_type: 'held' } })).status.state).toBe('completed');
    expect(dispatchesOf(other).length).toBe(1);
    other.close();
    await until(() => isStatus(shared, 'held-2', 'offline'), { what: 'the end of the other agent' });
    expect((await client.rpc('one more', first)).status).toBe(429);

    // Room for one: the next message gets it, and the one after it is refused again.
    const [held] = dispatchesOf(agent);
    if (held) dispatched(agent, held).result('done');
    const accepted = await until(async () => (await client.rpc('one more', first)).status === 200, {
      what: 'room',
    });
    expect(accepted).toBe(true);
    await until(() => dispatchesOf(agent).length === MAX + 1, { what: 'the next dispatch' });
    await until(() => isStatus(shared, 'held-1', 'busy'), { what: 'the saturation' });
    // A repeat finds its message all the same.
    expect((await client.rpc('one more', first)).status).toBe(200);
    expect((await client.rpc('another', { metadata: { agent_type: 'held' } })).status).toBe(429);
    for (const frame of dispatchesOf(agent)) dispatched(agent, frame).result('done');
  });
});

describe('more messages at once than an agent may have', () => {
  test('are refused, or wait for room: none fails, and the agent never has more', async () => {
    const shared = fast;
    const agent = await joinAgent(shared.platform, {
      instanceId: 'burst-1',
      agentType: 'burst',
      maxConcurrentSessions: 0,
    });
    await sendMany(shared, 'burst', MAX - AT_ONCE / 2);
    const statuses = await sendMany(shared, 'burst', AT_ONCE);
    const accepted = MAX - AT_ONCE / 2 + statuses.filter((status) => status === 200).length;
    await until(() => dispatchesOf(agent).length === MAX, { what: 'the dispatches' });
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    const other = await joinAgent(
      shared.platform,
      { instanceId: 'burst-2', agentType: 'burst', maxConcurrentSessions: 0 },
      echo,
    );
    await until(async () => (await messagesOf(shared, 'burst')).completed === accepted - MAX || accepted === MAX, {
      what: 'the messages that waited',
      timeoutMs: 120_000,
    });
    expect(dispatchesOf(other).length).toBe(accepted - MAX);
    expect(dispatchesOf(agent).length).toBe(MAX);
    for (const frame of dispatchesOf(agent)) dispatched(agent, frame).result('done');
    serve(agent, echo);
    await until(async () => (await messagesOf(shared, 'burst')).completed === accepted, {
      what: 'all ends',
      timeoutMs: 120_000,
    });
  }, 180_000);
});

describe('a hosted agent that never answers', () => {
  test('gets its share, then its messages are refused; others answer as ever', async () => {
    const shared = fast;
    const { client } = shared.platform;
    let open = 0;
    const answers: (() => void)[] = [];
    const silent = await hostedAgent({
      'message/send': (reply) => {
        open += 1;
        answers.push(() => reply.result(message('at last')));
      },
    });
    const quick = await hostedAgent({ 'message/send': (reply) => reply.result(message('quick')) });
    for (const [instance_id, { url }] of Object.entries({ silent, quick })) {
      const agent = {
        instance_id,
        agent_type: instance_id,
        deployment_mode: 'hosted',
        public_url: url,
        agent_card: {},
      };
      await client.ok('/agents/register', { ...agent, max_concurrent_sessions: 0 }, AgentRegisterResponse);
    }
    await sendMany(shared, 'silent', MAX);
    await until(() => open === MAX, { what: 'the requests', timeoutMs: 120_000 });
    await until(() => isStatus(shared, 'silent', 'busy'), { what: 'the saturation' });
    expect((await client.rpc('one more', { metadata: { agent_type: 'silent' } })).status).toBe(429);
    const task = await client.send('hello', { metadata: { agent_type: 'quick' } });
    expect(task.status.state).toBe('completed');
    for (const answer of answers.splice(0)) answer();
    await until(async () => (await messagesOf(shared, 'silent')).completed === MAX, {
      what: 'the ends',
      timeoutMs: 120_000,
    });
    await until(
      async () =>
        (await client.rpc('one more', { metadata: { agent_type: 'silent' }, blocking: false })).status === 200,
    );
  }, 180_000);
});
