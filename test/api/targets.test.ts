import { beforeAll, describe, expect, test } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { SetDefaultTypeResponse } from '../../contracts/api/agents.js';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { insertAgent } from '../setup/core.js';
import type { ApiClient, SendOptions } from '../setup/platform/api-client.js';
import { setSocket } from './moving.js';
import { serveApi } from './served-api.js';

let tenant: string;
let client: ApiClient;
const api = await serveApi();

/** A tenant of its own with agents on the record, as `instance: [type, status]`. */
async function fleet(agents: Record<string, [type: string, status: string]>, skills: Record<string, string[]> = {}) {
  tenant = await api.otherTenant();
  client = await api.clientOf(tenant, ['admin']);
  for (const [instance, [type, status]] of Object.entries(agents)) {
    const skillList = JSON.stringify((skills[instance] ?? []).map((id) => ({ id })));
    const agent = { instance_id: instance, agent_type: type, status, skills: skillList };
    await insertAgent(api.database, { tenant_id: tenant, ...agent });
  }
}

const deregister = (instance: string) =>
  api.database.query(
    "UPDATE agents SET status = 'offline', deregistered_at = now() WHERE tenant_id = $1 AND instance_id = $2",
    [tenant, instance],
  );
const setDefault = (agent_type: string | null) =>
  client.ok('/agents/set_default', { agent_type }, SetDefaultTypeResponse);

/** Sends without waiting for an answer: the state of the task, the type on the record, and why it failed. */
async function send(options: SendOptions = {}) {
  const { id } = await client.send('hello', { blocking: false, ...options });
  const { state, agent_type, error } = await client.message(id);
  return { state, agent_type, error };
}
const to = (metadata: Record<string, unknown>): SendOptions => ({ metadata });
const waits = (agent_type: string | null) => ({ state: 'submitted', agent_type, error: undefined });
const fails = (agent_type: string | null, message: string) => ({
  state: 'failed',
  agent_type,
  error: { code: 'TARGET_UNAVAILABLE', message },
});
const required = (message: string) => ({ code: -32602, message, data: { code: 'TARGET_REQUIRED' } });

describe('a message that names no target', () => {
  test('goes to the only type that is registered', async () => {
    await fleet({ 'a-1': ['alpha', 'offline'], 'a-2': ['alpha', 'available'], 'b-1': ['beta', 'available'] });
    await deregister('b-1');
    expect(await send()).toEqual(waits('alpha'));
  });

  test('is refused where there are several, naming them, or none', async () => {
    await fleet({ 'a-1': ['alpha', 'available'], 'b-1': ['beta', 'offline'] });
    const oneOf = 'the tenant has no default type. Set metadata.agent_type to one of: alpha, beta.';
    expect((await client.rpc('hello')).error).toEqual(required(`The message names no target, and ${oneOf}`));
    await fleet({});
    const none = 'The message names no target, and no agent is registered.';
    expect((await client.rpc('hello')).error).toEqual(required(none));
    expect(await api.database.query('SELECT 1 FROM messages WHERE tenant_id = $1', [tenant])).toEqual([]);
  });

  test('goes to the default type of its tenant, until there is none any more', async () => {
    await fleet({ 'a-1': ['alpha', 'available'], 'b-1': ['beta', 'offline'] });
    expect(await setDefault('beta')).toEqual({ ok: true, default_agent_type: 'beta' });
    expect(await send()).toEqual(waits('beta'));
    expect(await send(to({ agent_type: 'alpha' }))).toEqual(waits('alpha'));
    expect(await setDefault(null)).toEqual({ ok: true, default_agent_type: null });
    expect((await client.rpc('hello')).error?.data).toEqual({ code: 'TARGET_REQUIRED' });
  });

  test('fails where the default type is not registered', async () => {
    await fleet({ 'a-1': ['alpha', 'available'] });
    await setDefault('gamma');
    expect(await send()).toEqual(fails('gamma', 'No agent of the type gamma is registered. Registered types: alpha.'));
  });

  test('goes to the type of the session, or to that which its first message waits for', async () => {
    await fleet({ 'a-1': ['alpha', 'available'], 'b-1': ['beta', 'offline'] });
    await setDefault('alpha');
    const first = await client.send('first', { blocking: false, ...to({ agent_type: 'beta' }) });
    expect(await send({ contextId: first.contextId })).toEqual(waits('beta'));
    await setSocket(api, 'b-1');
    const bound = await client.ok('/sessions/init', { agent_type: 'beta' }, SessionInitResponse);
    expect(await send({ contextId: bound.session_id })).toEqual(waits('beta'));
    const open = await client.ok('/sessions/init', {}, SessionInitResponse);
    expect(await send({ contextId: open.session_id })).toEqual(waits('alpha'));
  });
});

describe('a target', () => {
  beforeAll(async () => {
    const agents: Record<string, [string, string]> = {
      'w-1': ['writer', 'offline'],
      'w-2': ['writer', 'draining'],
      'r-1': ['reader', 'available'],
      'gone-1': ['gone', 'available'],
    };
    await fleet(agents, { 'w-1': ['prose', 'verse'], 'r-1': ['aloud'] });
    await deregister('gone-1');
  });
  const TYPES = 'Registered types: reader, writer.';

  test.each<[metadata: Record<string, unknown>, agentType: string | null]>([
    [{ agent_type: 'writer' }, 'writer'],
    [{ instance_id: 'w-2' }, null],
    [{ skill_id: 'verse' }, null],
    [{ agent_type: 'writer', skill_id: 'prose' }, 'writer'],
    [{ target_agent: 'writer' }, 'writer'],
  ])('that is registered but offline or draining, %j, is waited for', async (metadata, agentType) => {
    expect(await send(to(metadata))).toEqual(waits(agentType));
  });

  test.each<[metadata: Record<string, unknown>, agentType: string | null, text: string]>([
    [{ agent_type: 'poet' }, 'poet', `No agent of the type poet is registered. ${TYPES}`],
    [{ agent_type: 'gone' }, 'gone', `No agent of the type gone is registered. ${TYPES}`],
    [{ instance_id: 'w-9' }, null, `The agent w-9 is not registered. ${TYPES}`],
    [{ instance_id: 'gone-1' }, null, `The agent gone-1 is deregistered. ${TYPES}`],
    [{ instance_id: 'w-1', agent_type: 'reader' }, 'reader', 'The agent w-1 is of the type writer, not reader.'],
    [{ skill_id: 'song' }, null, 'No registered agent has the skill song. Skills there are: aloud, prose, verse.'],
    [
      { agent_type: 'writer', skill_id: 'aloud' },
      'writer',
      'No registered agent of the type writer has the skill aloud. Skills there are: prose, verse.',
    ],
    [
      { instance_id: 'r-1', skill_id: 'prose' },
      null,
      'The agent r-1 does not have the skill prose. Skills there are: aloud.',
    ],
    [{ target_agent: 'poet' }, 'poet', `No agent of the type poet is registered. ${TYPES}`],
  ])('that is not registered, %j, fails at once', async (metadata, agentType, text) => {
    expect(await send(to(metadata))).toEqual(fails(agentType, text));
  });

  test('that is not registered ends a waiting call and a stream at once, and a repeat gives the same task', async () => {
    const options = { messageId: 'same', ...to({ agent_type: 'poet' }) };
    const task = await client.send('hello', options);
    expect(task.status.state).toBe('failed');
    expect(task.metadata).toMatchObject({ agent_type: 'poet', error: { code: 'TARGET_UNAVAILABLE' } });
    expect((await client.send('hello', options)).id).toBe(task.id);
    const events = [];
    for await (const event of client.stream('hello', to({ agent_type: 'poet' }))) events.push(event);
    expect(events.at(-1)).toMatchObject({ final: true, status: { state: 'failed' } });
    expect(events.at(0)).toMatchObject({ kind: 'task' });
  });

  test('that is not registered leaves a whole record: its events, once each, a push notification, and nothing for a workflow to do', async () => {
    const pushNotificationConfig = { url: 'https://receiver.example/' };
    const task = Task.parse(await client.send('hello', { ...to({ agent_type: 'poet' }), pushNotificationConfig }));
    const { events } = await client.ok('/telemetry/get_events', { session_id: task.contextId }, GetEventsResponse);
    expect(events.map(({ event_type, severity }) => [event_type, severity]).toSorted()).toEqual([
      ['message.error', 'warning'],
      ['message.received', 'info'],
      ['session.created', 'info'],
    ]);
    const [row] = await api.database.query(
      `SELECT completed_at = created_at AS at_once, EXISTS (SELECT 1 FROM running_messages r WHERE r.message_id = m.message_id) AS running
         FROM messages m WHERE message_id = $1`,
      [task.id],
    );
    expect(row).toEqual({ at_once: true, running: false });
    const pushed = await api.database.query('SELECT state FROM push_changes WHERE message_id = $1', [task.id]);
    expect(pushed).toEqual([{ state: 'failed' }]);
  });

  test('of another tenant is none', async () => {
    const here = client;
    const other = await api.otherTenant();
    client = await api.clientOf(other, ['read']);
    expect(await send(to({ agent_type: 'writer' }))).toEqual(fails('writer', 'No agent is registered.'));
    client = here;
  });
});

test('a text lists twenty types at most', async () => {
  const types = Array.from({ length: 25 }, (_, n) => `type-${String(n).padStart(2, '0')}`);
  await fleet(Object.fromEntries(types.map((type) => [type, [type, 'offline']])));
  const { error } = await send(to({ agent_type: 'x' }));
  expect(error?.message).toBe(
    `No agent of the type x is registered. Registered types: ${types.slice(0, 20).join(', ')}, ….`,
  );
});

test('the default type is the name of a type, and that of its tenant alone', async () => {
  await fleet({});
  for (const body of [{}, { agent_type: '' }, { agent_type: 'credential' }, { agent_type: 'a b' }, { agent_type: 7 }])
    expect(await client.failure('/agents/set_default', body)).toBe('400 BAD_REQUEST');
  const other = await api.clientOf(await api.otherTenant(), ['admin']);
  await other.ok('/agents/set_default', { agent_type: 'theirs' }, SetDefaultTypeResponse);
  expect((await client.rpc('hello')).error?.data).toEqual({ code: 'TARGET_REQUIRED' });
});
