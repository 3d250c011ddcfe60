import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { EventQueue } from '../../messages/stream/event-queue.js';
import { joinOnRecord } from '../api/moving.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { httpServer } from '../runtime/loopback-server.js';
import { insertAgent } from '../setup/core.js';
import type { SendOptions } from '../setup/platform/api-client.js';
import { stepAndTake } from '../setup/take.js';
import { deletePolicies, type NewPolicy, policyFor } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
  await joinOnRecord(api, 'worker-1');
  const agent = { tenant_id: api.tenantId, mesh_id: 'mesh_test', connection_epoch: 1 };
  await insertAgent(api.database, { ...agent, instance_id: 'coder-1', agent_type: 'coder' });
  await api.database.query(`UPDATE agents SET skills = '[{"id": "code"}]' WHERE instance_id = 'coder-1'`);
});
afterEach(() => deletePolicies(api.client));

const toCoder = { metadata: { agent_type: 'coder' } };
const toWorker = { metadata: { agent_type: 'worker' } };
const messageState = async (text: string, options: SendOptions) =>
  (await api.client.send(text, { blocking: false, ...options })).status.state;
/** The newest events that policies wrote. */
const events = () =>
  api.database.query<{ event_type: string; payload: object; session_id: string }>(
    "SELECT event_type, payload, session_id FROM events WHERE category = 'policy' ORDER BY event_id",
  );
const sessionWith = async (instance_id: string) =>
  (await api.client.ok('/sessions/init', { instance_id }, SessionInitResponse)).session_id;

describe('messages', () => {
  const denying = (policy: Partial<NewPolicy> = {}) =>
    policyFor(api.client, { scope: 'admission', decision: 'deny', reason: 'Not today.', ...policy });

  test('one that is denied fails at once and is recorded, and a repeat is not decided about', async () => {
    const { policy_id } = await denying({ match: { agent_types: ['coder'] } });
    const messageId = randomUUID();
    const { id, status } = await api.client.send('hello', { messageId, ...toCoder });
    expect(status.state).toBe('failed');
    expect((await api.client.message(id)).error).toEqual({ code: 'POLICY_DENIED', message: 'Not today.' });
    const payload = { policy_id, policy_name: 'deny', action: 'send', tool: null, reason: 'Not today.' };
    expect((await events()).at(-1)).toMatchObject({ event_type: 'policy.denied', payload });
    const before = (await events()).length;
    expect((await api.client.send('hello', { messageId, ...toCoder })).id).toBe(id);
    expect(await events()).toHaveLength(before);
    expect(await messageState('hi', toWorker)).toBe('submitted');
  });

  test('a policy sees what a message holds and who sends it', async () => {
    const expression = 'request.arguments.parts.exists(p, p.text.contains("secret")) && request.token.sub != ""';
    await denying({ evaluator: { type: 'cel', expression } });
    expect(await messageState('a secret', toWorker)).toBe('failed');
    expect(await messageState('nothing', toWorker)).toBe('submitted');
  });

  test.each<[string, () => Promise<SendOptions>]>([
    ['by the type of the session', async () => ({ contextId: await sessionWith('coder-1') })],
    ['by the instance', async () => ({ metadata: { instance_id: 'coder-1' } })],
    ['by the skill alone', async () => ({ metadata: { skill_id: 'code' } })],
  ])('a type that is denied cannot be reached %s either', async (_how, options) => {
    await denying({ match: { agent_types: ['coder'] } });
    const { id } = await api.client.send('hello', { blocking: false, ...(await options()) });
    await stepAndTake(api.core, { tenant_id: api.tenantId, message_id: id });
    expect((await api.client.message(id)).error?.code).toBe('POLICY_DENIED');
  });

  test('a caller is told that its message waits for approval without waiting for a change', async () => {
    await denying({ decision: 'require_approval' });
    const waits = vi.spyOn(EventQueue.prototype, 'take');
    expect(await messageState('please', { blocking: true, ...toWorker })).toBe('input-required');
    expect(waits).not.toHaveBeenCalled();
    waits.mockRestore();
  });
});

describe('sessions with an agent type that is denied', () => {
  const deny = (policy: Partial<NewPolicy> = {}) =>
    policyFor(api.client, { scope: 'session', decision: 'deny', match: { agent_types: ['coder'] }, ...policy });
  /** The status of a message that would open a session. */
  const sent = async (options: SendOptions) => (await api.client.rpc('hello', { blocking: false, ...options })).status;
  const sessions = async () => (await api.database.query('SELECT session_id FROM sessions')).length;

  test.each<[string, SendOptions]>([
    ['to the type', toCoder],
    ['to an instance of the type', { metadata: { instance_id: 'coder-1' } }],
    ['to a skill of the type', { metadata: { skill_id: 'code' } }],
    ['in a new context', { contextId: 'my-context', ...toCoder }],
  ])('are not opened by a message %s', async (name, options) => {
    const { policy_id } = await deny({ name });
    const before = await sessions();
    expect(await sent(options)).toBe(403);
    expect(await sessions()).toBe(before);
    const payload = { policy_id, policy_name: name, action: 'init', tool: null };
    expect((await events()).at(-1)).toMatchObject({ event_type: 'policy.denied', payload });
    expect(await sent(toWorker)).toBe(200);
  });

  test('are not opened by a message to the default type', async () => {
    await deny();
    await api.client.post('/agents/set_default', { agent_type: 'coder' });
    expect(await sent({})).toBe(403);
    await api.client.post('/agents/set_default', { agent_type: 'worker' });
    expect(await sent({})).toBe(200);
  });

  test('are not opened by a call, nor is the type invited', async () => {
    await deny();
    expect(await api.client.failure('/sessions/init', { instance_id: 'coder-1' })).toBe('403 forbidden');
    const session_id = await sessionWith('worker-1');
    expect(await api.client.failure('/sessions/invite', { session_id, agent_type: 'coder' })).toBe('403 forbidden');
    expect((await events()).slice(-2)).toMatchObject([
      { payload: { action: 'init' } },
      { payload: { action: 'invite' } },
    ]);
  });

  test('are refused where a policy asks for an approval, for which a session cannot wait', async () => {
    await deny({ decision: 'require_approval' });
    expect(await sent(toCoder)).toBe(403);
  });

  test('that are open go on, and repeats of messages that were accepted are not asked about', async () => {
    const options = { messageId: randomUUID(), ...toCoder, blocking: false };
    const task = await api.client.send('hello', options);
    await deny();
    expect((await api.client.send('hello', options)).id).toBe(task.id);
    expect(await sent({ contextId: task.contextId })).toBe(200);
  });

  test('that are only recorded have their event with the message that opens them', async () => {
    await deny({ decision: 'audit', match: {} });
    const audited = async (options: SendOptions) => {
      const { contextId } = await api.client.send('hello', { ...options, blocking: false });
      return (await events()).filter(({ session_id }) => session_id === contextId);
    };
    const event = { event_type: 'policy.audited', payload: { action: 'init' } };
    expect(await audited(toCoder)).toMatchObject([event]);
    expect(await audited({ contextId: 'another-context', ...toCoder })).toMatchObject([event]);
  });
});

describe('registrations', () => {
  const policy = ({ match, ...fields }: Partial<NewPolicy>) =>
    policyFor(api.client, {
      ...{ scope: 'admission', decision: 'deny', ...fields },
      match: { actions: ['register'], ...match },
    });
  /** The status of a registration. */
  const registered = async (body: object): Promise<number> => {
    const named = { agent_type: 'painter', instance_id: randomUUID(), ...body };
    return (await api.client.post('/agents/register', named)).status;
  };
  const cardWith = (...ids: string[]) => ({ name: 'Painter', skills: ids.map((id) => ({ id })) });

  test('one that is denied is 403, and nothing is registered', async () => {
    await policy({ match: { agent_types: ['spy'] } });
    expect(await registered({ instance_id: 'spy-1', agent_type: 'spy' })).toBe(403);
    expect(await api.client.failure('/agents/get_by_id', { instance_id: 'spy-1' })).toBe('404 NOT_FOUND');
    expect((await events()).at(-1)?.payload).toMatchObject({ action: 'register' });
  });

  test.each<[string, object, number]>([
    ['that it declares', { skills: [{ id: 'paint' }, { id: 'deploy' }] }, 403],
    ['on the card that it brings', { agent_card: cardWith('deploy') }, 403],
    ['of other names', { skills: [{ id: 'paint' }], agent_card: cardWith('draw') }, 200],
    ['that it does not have', {}, 200],
  ])('a policy that denies a skill sees those %s', async (_what, body, status) => {
    await policy({ match: { skills: ['deploy'] } });
    expect(await registered(body)).toBe(status);
  });

  test.each<[string, object, number]>([
    ['all of them fit', { skills: [{ id: 'paint' }], agent_card: cardWith('paint.oil') }, 200],
    ['one does not', { skills: [{ id: 'paint' }, { id: 'deploy' }] }, 403],
    ['there is none', {}, 403],
  ])('a policy that allows skills applies where all fit: %s', async (_what, body, status) => {
    await policy({ decision: 'allow', match: { skills: ['paint*'] }, priority: 1 });
    await policy({ priority: 2 });
    expect(await registered(body)).toBe(status);
  });

  test('the card of a hosted agent is decided about as it was fetched', async () => {
    const { url } = await httpServer((_request, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(cardWith('deploy')));
    });
    await policy({ match: { skills: ['deploy'] } });
    expect(await registered({ public_url: url })).toBe(403);
    expect(await api.database.query('SELECT 1 FROM agents WHERE public_url = $1', [url])).toEqual([]);
  });

  test('expressions see what is registered in the end, also what a registration does not name', async () => {
    const expression = 'request.arguments.tools.exists(t, t == "shell") || "deploy" in request.agent.skill_ids';
    await policy({ evaluator: { type: 'cel', expression } });
    expect(await registered({})).toBe(200);
    expect(await registered({ tools: ['read'] })).toBe(200);
    expect(await registered({ tools: ['read', 'shell'] })).toBe(403);
    expect(await registered({ agent_card: cardWith('deploy') })).toBe(403);
  });
});
