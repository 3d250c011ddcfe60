import { ListTasksRequest, SendMessageRequest, StreamResponse } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { expect, test } from 'vitest';
import { AgentCard03, AgentCard10 } from '../../../contracts/a2a/agent-card.js';
import { textMessage } from '../../setup/core.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const skills = [{ id: 'paint', name: 'Paint', tags: ['colour'] }];
const painter = { agent_type: 'painter', deployment_mode: 'connected', skills };
await api.client.post('/agents/register', {
  ...{ ...painter, instance_id: 'painter-1', agent_version: '1.2.0' },
  agent_card: {
    name: 'Painters',
    description: 'Paint walls.',
    defaultInputModes: ['image/png'],
    iconUrl: 'https://x/i',
  },
});
await api.client.post('/agents/register', {
  ...{
    ...painter,
    instance_id: 'painter-2',
    provider_organization: 'Paint Ltd',
    provider_url: 'https://paint.example',
  },
  agent_card: { name: 'New painters', defaultInputModes: ['text/plain'], skills: [{ id: 'varnish' }] },
});
// The clients resolve the path of the card against it: without the slash they would look beside the type.
const address = `${api.baseUrl}/a2a/worker/`;
const authorization = `Bearer ${await api.client.token()}`;
const authorized: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', authorization);
  return fetch(input, { ...init, headers });
};
let messages = 0;
const PARTS = [{ kind: 'text' as const, text: 'hello' }];
const text = (change: object = {}) => ({ ...textMessage(), parts: PARTS, ...change });
async function rpc(type: string, method: string, params: object) {
  const headers = { authorization, 'content-type': 'application/json' };
  return api.client.raw(`/a2a/${type}`, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers);
}
const card = (type: string, headers: Record<string, string> = {}) =>
  api.client.raw(`/a2a/${type}/.well-known/agent-card.json`, null, headers, 'GET');
const typeOf = async (messageId: string) => {
  const [row] = await api.database.query('SELECT want_agent_type FROM messages WHERE message_id = $1', [messageId]);
  return row?.want_agent_type;
};

test('the published client of A2A 1.0 finds the address by its card, and its messages go to the type', async () => {
  const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl: authorized })] });
  const client = await factory.createFromUrl(address);
  const request = (change: object = {}) =>
    SendMessageRequest.fromJSON({
      message: { messageId: `type-${++messages}`, role: 'ROLE_USER', parts: [{ text: 'hello' }], ...change },
      configuration: { returnImmediately: true },
    });
  const sent = await client.sendMessage(request());
  if (!('id' in sent)) throw new Error('no task');
  expect(await typeOf(sent.id)).toBe('worker');
  await answerMessage(api, sent.id, ASKS);
  await client.sendMessage(request({ taskId: sent.id, parts: [{ text: 'approved' }] }));
  await answerMessage(api, sent.id, COMPLETED);

  const newMessage = await api.nextMessage();
  const found: unknown[] = [];
  const reading = (async () => {
    for await (const event of client.sendMessageStream(request())) found.push(StreamResponse.toJSON(event));
  })();
  await answerMessage(api, await newMessage(), COMPLETED);
  await reading;
  expect(found[0]).toMatchObject({ task: { status: {} } });
  expect(found).toContainEqual(
    expect.objectContaining({ artifactUpdate: expect.objectContaining({ artifact: expect.anything() }) }),
  );
  expect(found.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });

  const elsewhere = await api.client.send('hi', { metadata: { agent_type: 'painter' }, blocking: false });
  const listed = await client.listTasks(ListTasksRequest.fromJSON({ pageSize: 10 }));
  expect(listed.tasks.map(({ id }) => id)).toContain(sent.id);
  expect(listed.tasks.map(({ id }) => id)).not.toContain(elsewhere.id);
  expect(listed.totalSize).toBe(2);
  await expect(client.getTask({ tenant: '', id: elsewhere.id, historyLength: undefined })).rejects.toThrow(/not found/);
  expect((await client.getAgentCard()).skills).toMatchObject([{ id: 'worker' }]);
});

test('every method on a task of another type is TASK_NOT_FOUND, and nothing happens to it', async () => {
  const { id } = await api.client.send('hi', { metadata: { agent_type: 'painter' }, blocking: false });
  const pushNotificationConfig = { url: 'https://receiver.example/' };
  const calls: [string, object][] = [
    ['tasks/get', { id }],
    ['tasks/cancel', { id }],
    ['tasks/resubscribe', { id }],
    ['message/send', { message: text({ taskId: id }) }],
    ['tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig }],
    ['tasks/pushNotificationConfig/get', { id }],
    ['tasks/pushNotificationConfig/list', { id }],
    ['tasks/pushNotificationConfig/delete', { id, pushNotificationConfigId: 'x' }],
  ];
  for (const [method, params] of calls)
    expect(await rpc('worker', method, params), method).toMatchObject({
      status: 200,
      body: { error: { code: -32001 } },
    });
  const { body } = await rpc('painter', 'tasks/get', { id });
  expect(body).toMatchObject({ result: { id, status: { state: 'submitted' } } });
});

test('metadata may say more than the address, and nothing else', async () => {
  const send = (metadata: object, message: object = {}) =>
    rpc('worker', 'message/send', { message: text(message), metadata, configuration: { blocking: false } });
  expect((await send({ agent_type: 'worker', instance_id: 'worker-1', own: 1 })).body).toHaveProperty('result');
  for (const other of [{ agent_type: 'painter' }, { target_agent: 'painter-1' }]) {
    expect((await send(other)).body).toMatchObject({ error: { code: -32602 } });
    expect((await send({}, { metadata: other })).body).toMatchObject({ error: { code: -32602 } });
  }
});

test('an unknown type is 404, and one whose agents have left fails the message as /send does', async () => {
  for (const type of ['nobody', 'credential', 'a%00b', encodeURIComponent("x' OR 1")]) {
    const refused = { status: 404, body: { code: 'NOT_FOUND' } };
    expect(await rpc(type, 'message/send', { message: text() })).toMatchObject(refused);
    expect(await card(type, { authorization })).toMatchObject(refused);
  }
  const other = await api.clientOf(await api.otherTenant(), ['full']);
  const headers = { authorization: `Bearer ${await other.token()}`, 'content-type': 'application/json' };
  expect((await api.client.raw('/a2a/worker', '{}', headers)).status).toBe(404);
  expect((await api.client.raw('/a2a/worker', '{}', { 'content-type': 'application/json' })).status).toBe(401);

  await api.client.post('/agents/register', {
    agent_type: 'gone',
    instance_id: 'gone-1',
    deployment_mode: 'connected',
  });
  await api.client.post('/agents/deregister', { instance_id: 'gone-1' });
  const { body } = await rpc('gone', 'message/send', { message: text() });
  expect(body).toMatchObject({ result: { metadata: { error: { code: 'TARGET_UNAVAILABLE' } } } });
  expect((await card('gone', { authorization })).status).toBe(404);
});

test("the type's card is merged from those of its agents; without a token it shows nothing of a tenant", async () => {
  const { body, headers } = await card('painter', { authorization });
  expect(AgentCard03.strict().parse(body)).toMatchObject({
    name: 'New painters',
    description: 'Paint walls.',
    version: '1.2.0',
    url: `${api.baseUrl}/a2a/painter`,
    iconUrl: 'https://x/i',
    provider: { organization: 'Paint Ltd', url: 'https://paint.example' },
    defaultInputModes: ['image/png', 'text/plain'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [{ id: 'paint', tags: ['colour'] }, { id: 'varnish' }],
  });
  expect(headers.get('cache-control')).toBe('private, max-age=60');
  const later = await card('painter', { authorization, 'a2a-version': '1.0' });
  expect(AgentCard10.strict().parse(later.body)).toMatchObject({
    supportedInterfaces: [{ url: `${api.baseUrl}/a2a/painter`, protocolVersion: '1.0' }, { protocolVersion: '0.3' }],
    skills: [{ id: 'paint' }, { id: 'varnish' }],
  });
  const extended = await rpc('painter', 'agent/getAuthenticatedExtendedCard', {});
  expect(extended.body).toMatchObject({ result: body as object });
  const shown = await card('painter');
  expect((shown.body as AgentCard03).skills).toMatchObject([{ id: 'fleet.route' }]);
  expect(JSON.stringify((await card('nobody')).body).replaceAll('nobody', 'painter')).toBe(JSON.stringify(shown.body));
});
