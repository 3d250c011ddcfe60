import { connect } from 'node:net';
import { expect, test } from 'vitest';
import type { StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { ErrorBody } from '../../../contracts/primitives.js';
import type { RpcAnswer } from '../../setup/platform/api-client.js';
import { until } from '../../setup/until.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

/** Streams and waiting calls that follow a message just now. */
let watchers = 0;
const api = await serveApi();
const { bus } = api.core;
const subscribe = bus.subscribe.bind(bus);
bus.subscribe = (...args) => {
  watchers++;
  const stop = subscribe(...args);
  return () => {
    watchers--;
    stop();
  };
};
await joinOnRecord(api, 'worker-1');

const TEXT = [{ kind: 'text', text: 'hello' }];
let count = 0;
const message = (change: object = {}) => ({
  kind: 'message',
  messageId: `m-${++count}`,
  role: 'user',
  parts: TEXT,
  ...change,
});
const call = (params: unknown, change: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'message/send',
  params,
  ...change,
});

async function post(body: string, headers: Record<string, string> = {}): Promise<RpcAnswer> {
  const answer = await api.client.raw('/send', body, { ...(await api.client.headers()), ...headers });
  return { ...answer, ...(answer.body as Pick<RpcAnswer, 'result' | 'error'>) };
}
const send = (params: unknown, change: object = {}, headers = {}) =>
  post(JSON.stringify(call(params, change)), headers);
const NOW = { configuration: { blocking: false } };

const big = (bytes: number) => 'x'.repeat(bytes);
test.each<[string, string, number, unknown]>([
  ['no JSON', '{"jsonrpc":', -32700, null],
  ['nothing', '', -32700, null],
  ['a batch', JSON.stringify([call({ message: message() })]), -32600, null],
  ['an empty batch', '[]', -32600, null],
  ['a string', '"hello"', -32600, null],
  ['no version of JSON-RPC', JSON.stringify({ id: 1, method: 'message/send' }), -32600, 1],
  ['JSON-RPC 1.0', JSON.stringify(call({}, { jsonrpc: '1.0' })), -32600, 7],
  ['an id that is none', JSON.stringify(call({}, { id: {} })), -32600, null],
  ['no method', JSON.stringify({ jsonrpc: '2.0', id: 'a' }), -32600, 'a'],
  ['an unknown method', JSON.stringify(call({}, { method: 'message/paint' })), -32601, 7],
  ['a method of A2A 1.0', JSON.stringify(call({}, { method: 'SendMessage' })), -32601, 7],
  ['no params', JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'message/send' }), -32602, 7],
  ['params in a list', JSON.stringify(call([message()])), -32602, 7],
  ['no message', JSON.stringify(call({})), -32602, 7],
  ['no parts', JSON.stringify(call({ message: message({ parts: [] }) })), -32602, 7],
  ['an unknown part', JSON.stringify(call({ message: message({ parts: [{ kind: 'smell' }] }) })), -32602, 7],
  ['no messageId', JSON.stringify(call({ message: message({ messageId: '' }) })), -32602, 7],
  ['an agent for its author', JSON.stringify(call({ message: message({ role: 'agent' }) })), -32602, 7],
  [
    'a negative historyLength',
    JSON.stringify(call({ message: message(), configuration: { historyLength: -1 } })),
    -32602,
    7,
  ],
  [
    'parts of more than 256 KiB',
    JSON.stringify(call({ message: message({ parts: [{ kind: 'text', text: big(262_145) }] }) })),
    -32602,
    7,
  ],
  [
    'metadata of more than 16 KiB',
    JSON.stringify(call({ message: message(), metadata: { a: big(16_385) } })),
    -32602,
    7,
  ],
  [
    'message metadata of more than 16 KiB',
    JSON.stringify(call({ message: message({ metadata: { a: big(16_385) } }) })),
    -32602,
    7,
  ],
  [
    'a deadline of two days',
    JSON.stringify(call({ message: message(), metadata: { deadline_ms: 172_800_000 } })),
    -32602,
    7,
  ],
  ['args that are no object', JSON.stringify(call({ message: message(), metadata: { args: [1] } })), -32602, 7],
  [
    'args of more than 16 KiB',
    JSON.stringify(call({ message: message(), metadata: { skill_id: 's', args: { a: big(16_385) } } })),
    -32602,
    7,
  ],
  [
    'args in the message that are no object',
    JSON.stringify(call({ message: message({ metadata: { args: 'x' } }) })),
    -32602,
    7,
  ],
  [
    'push notifications to a private address',
    JSON.stringify(
      call({ message: message(), configuration: { pushNotificationConfig: { url: 'http://10.0.0.1/' } } }),
    ),
    -32602,
    7,
  ],
  ['an unknown session', JSON.stringify(call({ message: message({ contextId: 'ses_x' }) })), -32602, 7],
  ['an unknown task', JSON.stringify(call({ message: message({ taskId: 'msg_x' }) })), -32001, 7],
])('%s: JSON-RPC error %# on HTTP 200', async (_what, body, code, id) => {
  const answer = await post(body);
  expect(answer).toMatchObject({
    status: 200,
    body: { jsonrpc: '2.0', id, error: { code, message: expect.any(String) } },
  });
  expect(answer.headers.get('x-request-id')).toMatch(/^\S{8,}$/);
  expect(answer.body).not.toHaveProperty('result');
});

test.each([
  ['1.1', -32009],
  ['1', -32009],
  ['0.2', -32009],
  ['latest', -32009],
])('A2A-Version %s: %i', async (version, code) => {
  expect(await send({ message: message() }, {}, { 'a2a-version': version })).toMatchObject({
    status: 200,
    error: { code },
  });
});

test.each([
  ['1.0', '?A2A-Version=1.0', {}],
  ['1.0', '?a2a-version=1.0.2', {}],
  ['1.0', '?A2A-Version=1.0', { 'a2a-version': '' }],
  ['1.0', '?A2A-Version=0.3', { 'a2a-version': '1.0' }],
  ['0.3', '?A2A-Version=1.0', { 'a2a-version': '0.3' }],
  ['0.3', '?A2A-Version=', {}],
  ['none', '?A2A-Version=2.0', {}],
  ['none', '?A2A-Version=1.0&A2A-Version=0.3', {}],
])('the version is %s for %s beside the header %j', async (spoken, query, version) => {
  const headers = { ...(await api.client.headers()), ...version };
  const tasks = { jsonrpc: '2.0', id: 7, method: 'ListTasks', params: {} };
  const answer = (await api.client.raw(`/send${query}`, JSON.stringify(tasks), headers)).body as RpcAnswer;
  if (spoken === '1.0') expect(answer.result).toMatchObject({ tasks: expect.any(Array) });
  else expect(answer.error?.code).toBe(spoken === '0.3' ? -32601 : -32009);
});

test.each(['0.3', '0.3.0', ''])('A2A-Version "%s" is spoken here', async (version) => {
  const answer = await send({ message: message(), ...NOW }, {}, { 'a2a-version': version });
  expect(answer.result).toMatchObject({ kind: 'task', status: { state: 'submitted' } });
});

test.each([
  ['deep', `{"jsonrpc":"2.0","params":${'['.repeat(40)}${']'.repeat(40)}}`],
  ['NUL', '{"jsonrpc":"2.0","id":"\\u0000"}'],
  ['__proto__', '{"__proto__":{}}'],
])('what no body may hold is refused by status: %s', async (_what, body) => {
  const answer = await post(body);
  expect(answer.status).toBe(400);
  ErrorBody.strict().parse(answer.body);
});

test('a task is given back with the ids of its message and session, and a repeat gives the same', async () => {
  const params = { message: message({ parts: [...TEXT, { kind: 'text', text: 'half \ud800 pair' }] }), ...NOW };
  const first = (await send(params)).result as Task;
  expect(first).toMatchObject({
    kind: 'task',
    id: expect.stringMatching(/^msg_/),
    contextId: expect.stringMatching(/^ses_/),
  });
  expect(((await send(params, { id: null })).result as Task).id).toBe(first.id);
  const other = { ...params, message: { ...params.message, parts: [{ kind: 'text', text: 'other' }] } };
  expect((await send(other)).error).toMatchObject({ code: -32602, data: { code: 'IDEMPOTENCY_MISMATCH' } });
});

test('a closed session takes no message', async () => {
  const { session_id } = await api.client.ok('/sessions/init', {}, SessionInitResponse);
  await api.client.post('/sessions/close', { session_id });
  const answer = await send({ message: message({ contextId: session_id }) });
  expect(answer.error).toMatchObject({ code: -32004, data: { code: 'SESSION_CLOSED' } });
});

test("another tenant's session and task are unknown", async () => {
  const task = (await send({ message: message(), ...NOW })).result as Task;
  const other = await api.clientOf(await api.otherTenant(), ['full']);
  const inSession = await other.rpc('hello', { contextId: task.contextId });
  expect(inSession.error?.code).toBe(-32602);
  expect((await other.rpc('hello', { taskId: task.id })).error?.code).toBe(-32001);
  for (const path of ['/messages/get_by_id', '/messages/cancel']) {
    expect(await other.failure(path, { message_id: task.id })).toBe('404 NOT_FOUND');
  }
  expect(await other.failure(`/messages/${task.id}/resolve`, { resolution: 'approved' })).toBe('404 NOT_FOUND');
  for (const path of ['/sessions/get_by_id', '/sessions/close', '/sessions/interrupt']) {
    expect(await other.failure(path, { session_id: task.contextId })).toBe('404 NOT_FOUND');
  }
});

test('message/send waits for the answer', async () => {
  const newMessage = await api.nextMessage();
  const waiting = api.client.send('hello');
  const id = await newMessage();
  await answerMessage(api, id, COMPLETED);
  expect(await waiting).toMatchObject({ id, status: { state: 'completed' }, artifacts: COMPLETED.artifacts });
});

test('what an agent asks is answered by a message that names the task', async () => {
  const task = await api.client.send('hello', { blocking: false });
  await answerMessage(api, task.id, ASKS);
  expect((await api.client.message(task.id)).state).toBe('input-required');
  const next = await api.client.rpc('approved', { taskId: task.id, contextId: task.contextId, blocking: false });
  expect(next.result).toMatchObject({ id: task.id, status: { state: 'working' } });
  await answerMessage(api, task.id, COMPLETED);
  expect((await api.client.rpc('more', { taskId: task.id })).error?.code).toBe(-32004);
});

test('message/stream gives the task first and ends after the final update', async () => {
  const newMessage = await api.nextMessage();
  const events: StreamEvent[] = [];
  const reading = (async () => {
    for await (const event of api.client.stream('hello')) events.push(event);
  })();
  const id = await newMessage();
  await until(() => events.length > 0);
  api.core.bus.publish(api.tenantId, id, {
    kind: 'artifact',
    artifact: { artifactId: 'part', parts: [{ kind: 'text', text: 'first words' }] },
    append: false,
    last_chunk: false,
  });
  await until(() => events.some((event) => event.kind === 'artifact-update'));
  await answerMessage(api, id, COMPLETED);
  await reading;
  expect(events[0]).toMatchObject({ kind: 'task', id });
  expect(events.filter((event) => 'final' in event && event.final)).toEqual([events.at(-1)]);
  expect(events.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
});

test('a stream has an id for each event, whole JSON-RPC responses, and the id of the request in its head', async () => {
  const task = await api.client.send('hello', { blocking: false });
  await answerMessage(api, task.id, ASKS);
  const params = { message: message({ taskId: task.id, parts: [{ kind: 'text', text: 'approved' }] }) };
  const reading = fetch(`${api.baseUrl}/send`, {
    method: 'POST',
    headers: { ...(await api.client.headers()), 'x-request-id': 'stream-1' },
    body: JSON.stringify(call(params, { method: 'message/stream', id: 'rpc-1' })),
  });
  const response = await reading;
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  expect(response.headers.get('x-request-id')).toBe('stream-1');
  await until(() =>
    api.core.db.tenant(api.tenantId, (tx) => tx.query('SELECT 1 FROM messages WHERE message_id = $1', [task.id])),
  );
  await answerMessage(api, task.id, COMPLETED);
  const text = await response.text();
  const ids = [...text.matchAll(/^id: (\S+)$/gm)].map(([, id]) => id);
  expect(ids.length).toBeGreaterThan(1);
  expect(new Set(ids).size).toBe(ids.length);
  const answers = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as object);
  expect(answers.length).toBe(ids.length);
  for (const answer of answers) expect(answer).toMatchObject({ jsonrpc: '2.0', id: 'rpc-1', result: {} });
});

test('a stream that cannot begin is a JSON-RPC error', async () => {
  const answer = await send({ message: message({ contextId: 'ses_x' }) }, { method: 'message/stream' });
  expect(answer).toMatchObject({ status: 200, error: { code: -32602 } });
  expect(answer.headers.get('content-type')).toContain('application/json');
});

test('whoever reads only a stream gets the error of one that cannot begin as its event', async () => {
  const params = { message: message({ contextId: 'ses_x' }) };
  const headers = { ...(await api.client.headers()), accept: 'text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'rpc-1', method: 'message/stream', params });
  const response = await fetch(`${api.baseUrl}/send/`, { method: 'POST', headers, body });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const [, data = ''] = /^data: (.*)$/m.exec(await response.text()) ?? [];
  expect(JSON.parse(data)).toMatchObject({ jsonrpc: '2.0', id: 'rpc-1', error: { code: -32602 } });
  const newer = await fetch(`${api.baseUrl}/send`, {
    method: 'POST',
    headers: { ...headers, 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'rpc-1', method: 'SubscribeToTask', params: { id: 'msg_x' } }),
  });
  expect(newer.headers.get('content-type')).toContain('application/json');
  expect(await newer.json()).toMatchObject({ error: { code: -32001 } });
});

test('a reader who leaves ends its stream, and the task goes on', async () => {
  const newMessage = await api.nextMessage();
  const leaving = new AbortController();
  const reading = (async () => {
    for await (const event of api.client.stream('hello', { signal: leaving.signal }))
      if (event.kind === 'task') leaving.abort();
  })();
  await expect(reading).rejects.toThrow(/abort/i);
  const id = await newMessage();
  await until(() => watchers === 0, { what: 'nobody watches the message' });
  await answerMessage(api, id, COMPLETED);
  expect((await api.client.message(id)).state).toBe('completed');
});

test('a reader who does not read holds up its own stream only', async () => {
  const newMessage = await api.nextMessage();
  const socket = connect(api.port, '127.0.0.1').pause();
  const body = JSON.stringify(call({ message: message() }, { method: 'message/stream' }));
  const { authorization } = (await api.client.headers()) as { authorization: string };
  socket.write(
    `POST /send HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const id = await newMessage();
  const parts = [{ kind: 'text' as const, text: big(100_000) }];
  for (let chunk = 0; chunk < 300; chunk++) {
    const artifact = { artifactId: 'a', parts };
    api.core.bus.publish(api.tenantId, id, { kind: 'artifact', artifact, append: true, last_chunk: false });
  }
  expect((await api.client.message(id)).state).toBe('submitted');
  await answerMessage(api, id, COMPLETED);
  socket.destroy();
  await until(() => watchers === 0, { what: 'nobody watches the message' });
});

test('beyond the bound of messages in flight: 429 with Retry-After, by status', async () => {
  const tenantId = await api.otherTenant();
  await joinOnRecord(api, 'worker-1', tenantId);
  const client = await api.clientOf(tenantId, ['read']);
  for (let sent = 0; sent < 50; sent++) await client.send('hello', { blocking: false });
  const answer = await client.rpc('one more', { blocking: false });
  expect(answer).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  expect(answer.headers.get('retry-after')).toBe('1');
});

test('when the platform drains, who waits is answered with the task as it is, streams end, new calls get 503', async () => {
  const draining = await serveApi();
  await joinOnRecord(draining, 'worker-1');
  const waiting = draining.client.send('hello');
  const events: StreamEvent[] = [];
  const reading = (async () => {
    for await (const event of draining.client.stream('hello')) events.push(event);
  })();
  await until(() => events.length > 0);
  await until(async () => (await draining.database.query('SELECT 1 FROM messages')).length === 2);
  draining.draining.abort();
  expect((await waiting).status.state).toBe('submitted');
  await reading;
  const answer = await draining.client.post('/sessions/get', {});
  expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } });
  expect((await draining.client.get('/health')).status).toBe(200);
});
