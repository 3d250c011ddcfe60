import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AgentGetByIdResponse, AgentRegisterResponse } from '../../../contracts/api/agents.js';
import {
  type SessionAgent,
  SessionGetByIdResponse,
  SessionInitResponse,
  SessionInviteResponse,
} from '../../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../../contracts/api/telemetry.js';
import { setSocket } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();

let count = 0;
const freshType = () => `type-${++count}`;

/** Registers an agent that has a socket, as far as the database knows. */
async function agent(agent_type: string, instance_id = `inst-${++count}`, max = 10): Promise<string> {
  const body = { instance_id, agent_type, max_concurrent_sessions: max };
  await api.client.ok('/agents/register', body, AgentRegisterResponse);
  await online(instance_id);
  return instance_id;
}
const online = (instance_id: string) => setSocket(api, instance_id);
const offline = (instance_id: string) => setSocket(api, instance_id, false);
const init = async (body: object = {}): Promise<string> =>
  (await api.client.ok('/sessions/init', { reserve: true, ...body }, SessionInitResponse)).session_id;
const invite = async (session_id: string, agent_type: string, instance_id?: string): Promise<SessionAgent> =>
  (await api.client.ok('/sessions/invite', { session_id, agent_type, instance_id }, SessionInviteResponse.strict()))
    .agent;
const refusal = (body: object) => api.client.failure('/sessions/invite', body);
const agentsOf = async (session_id: string): Promise<[string, string][]> => {
  const { session } = await api.client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse);
  return session.agents.map(({ instance_id, join_reason }) => [instance_id, join_reason]);
};
const load = async (instance_id: string): Promise<number> =>
  (await api.client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse)).agent.current_sessions;
/** What `agent.capacity_changed` said of an instance, oldest first. */
async function counts(instance_id: string): Promise<unknown[]> {
  const query = { type: 'agent.capacity_changed', page_size: 100 };
  const { events } = await api.client.ok('/telemetry/get_events', query, GetEventsResponse);
  const own = events.filter(({ event }) => event.instance_id === instance_id);
  return own.map(({ event }) => event.current_sessions).reverse();
}

describe('an invited agent', () => {
  test('joins beside the session’s own, the least loaded of its type or the one that is named, and takes no place there', async () => {
    const [own, other] = [freshType(), freshType()];
    const mine = await agent(own);
    const [loaded, free] = [await agent(other), await agent(other)];
    await init({ instance_id: loaded });
    const session_id = await init({ instance_id: mine });
    const joined = await invite(session_id, other);
    const how = { joined_at: expect.any(String), join_reason: 'invited' };
    expect(joined).toEqual({ agent_type: other, instance_id: free, ...how });
    expect(await agentsOf(session_id)).toEqual([
      [mine, 'init'],
      [free, 'invited'],
    ]);
    expect([await load(mine), await load(free)]).toEqual([1, 0]);
    const named = await init({ instance_id: mine });
    expect((await invite(named, other, loaded)).instance_id).toBe(loaded);
  });

  test('is the one that is there already, and another of the type is refused', async () => {
    const type = freshType();
    const [one, two] = [await agent(type), await agent(type)];
    const session_id = await init({ instance_id: one });
    const joined = await invite(session_id, type);
    expect(joined).toMatchObject({ instance_id: one, join_reason: 'init' });
    expect(await invite(session_id, type, one)).toEqual(joined);
    expect(await refusal({ session_id, agent_type: type, instance_id: two })).toBe('409 CONFLICT');
    expect(await agentsOf(session_id)).toEqual([[one, 'init']]);
  });

  test('is the own agent of a session that has none, and counts there until the session ends', async () => {
    const type = freshType();
    const only = await agent(type, undefined, 1);
    const session_id = await init();
    await invite(session_id, type);
    expect(await load(only)).toBe(1);
    expect(await refusal({ session_id: await init(), agent_type: type })).toBe('409 AGENT_AT_CAPACITY');
    await api.client.post('/sessions/close', { session_id });
    expect(await load(only)).toBe(0);
    expect(await counts(only)).toEqual([1, 0]);
  });

  test('replaces one of its type that is gone; that one may be invited back', async () => {
    const type = freshType();
    const one = await agent(type);
    const session_id = await init({ instance_id: one });
    await offline(one);
    expect(await refusal({ session_id, agent_type: type })).toBe('503 SERVICE_UNAVAILABLE');
    const two = await agent(type);
    expect(await invite(session_id, type)).toMatchObject({ instance_id: two, join_reason: 'failover' });
    expect([await load(one), await load(two)]).toEqual([0, 1]);
    expect([await counts(one), await counts(two)]).toEqual([[1, 0], [1]]);
    await online(one);
    await offline(two);
    expect(await invite(session_id, type, one)).toMatchObject({ instance_id: one, join_reason: 'failover' });
    await online(two);
    expect((await invite(session_id, type)).instance_id).toBe(one);
    expect([await load(one), await load(two)]).toEqual([1, 0]);
  });

  test('is bound again where its deregistration had unbound the session', async () => {
    const type = freshType();
    const instance_id = await agent(type);
    const session_id = await init({ instance_id });
    await api.client.post('/agents/deregister', { instance_id });
    expect(await load(instance_id)).toBe(0);
    await agent(type);
    await agent(type, instance_id);
    expect(await invite(session_id, type)).toMatchObject({ instance_id, join_reason: 'failover' });
    expect(await load(instance_id)).toBe(1);
  });

  test('is one, however many invitations come at once', async () => {
    const type = freshType();
    for (let n = 0; n < 4; n += 1) await agent(type);
    const session_id = await init();
    const joined = await Promise.all(Array.from({ length: 12 }, () => invite(session_id, type)));
    expect(new Set(joined.map(({ instance_id }) => instance_id)).size).toBe(1);
    expect(await agentsOf(session_id)).toHaveLength(1);
  });
});

describe('an invitation is refused', () => {
  test('into a session that there is not, or has ended', async () => {
    const agent_type = freshType();
    const instance_id = await agent(agent_type);
    const session_id = await init({ instance_id });
    expect(await refusal({ session_id: `ses_${randomUUID()}`, agent_type })).toBe('404 NOT_FOUND');
    await api.client.post('/sessions/close', { session_id });
    expect(await refusal({ session_id, agent_type })).toBe('409 SESSION_CLOSED');
  });

  test('of an instance that there is not, is another tenant’s, of another type, gone or full', async () => {
    const agent_type = freshType();
    const session_id = await init();
    const body = (instance_id?: string) => ({ session_id, agent_type, instance_id });
    expect(await refusal(body())).toBe('503 SERVICE_UNAVAILABLE');
    expect(await refusal(body('nobody'))).toBe('404 NOT_FOUND');
    const other = await api.clientOf(await api.otherTenant(), ['full']);
    await other.ok('/agents/register', { instance_id: 'theirs', agent_type }, AgentRegisterResponse);
    expect(await refusal(body('theirs'))).toBe('404 NOT_FOUND');
    expect(await refusal(body(await agent(freshType())))).toBe('400 BAD_REQUEST');
    const instance_id = await agent(agent_type, undefined, 1);
    await init({ instance_id });
    expect(await refusal(body(instance_id))).toBe('409 AGENT_AT_CAPACITY');
    expect(await refusal(body())).toBe('409 AGENT_AT_CAPACITY');
    await offline(instance_id);
    expect(await refusal(body(instance_id))).toBe('503 SERVICE_UNAVAILABLE');
    await api.client.post('/agents/deregister', { instance_id });
    expect(await refusal(body(instance_id))).toBe('503 SERVICE_UNAVAILABLE');
    expect(await agentsOf(session_id)).toEqual([]);
  });

  test('without a type that agents can be of', async () => {
    for (const agent_type of [undefined, 'a b'])
      expect(await refusal({ session_id: 'ses_1', agent_type })).toBe('400 BAD_REQUEST');
  });
});
