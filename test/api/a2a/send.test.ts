import { expect, test } from 'vitest';
import type { StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import { ErrorBody } from '../../../contracts/primitives.js';
import { textMessage } from '../../setup/core.js';
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

const TEXT = [{ kind: 'text' as const, text: 'hello' }];
const message = (change: object = {}) => textMessage('hello', change);
const call = (params: unknown, change: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 7, method: 'message/send', params },
  ...change,
});

async function post(body: string, headers: Record<string, string> = {}): Promise<RpcAnswer> {
  const answer = await api.client.raw('/send', body, { ...(await api.client.headers()), ...headers });
  return { ...answer, ...(answer.body as Pick<RpcAnswer, 'result' | 'error'>) };
}
const send = (params: unknown, change: object = {}, headers = {}) =>
  post(JSON.stringify(call(params, change)), headers);
const NOW = { configuration: { blocking: false } };
/** The answer as it comes, for streams. */
const open = async (body: object, headers: Record<string, string>, path = '/send') =>
  fetch(`${api.baseUrl}${path}`, {
    method: 'POST',
    headers: { ...(await api.client.headers()), ...headers },
    body: JSON.stringify(body),
  });

const big = (bytes: number) => 'x'.repeat(bytes);
const text = (of: string) => ({ parts: [{ kind: 'text', text: of }] });
const own = message();
test('a method of the other version is refused with the header that selects it', async () => {
  const refusalOf = async (method: string, headers = {}) => (await send({}, { method }, headers)).error?.message;
  expect(await refusalOf('SendMessage')).toContain('send the header A2A-Version: 1.0');
  expect(await refusalOf('message/send', { 'A2A-Version': '1.0' })).toContain('send the header A2A-Version: 0.3');
  expect(await refusalOf('message/paint')).not.toContain('header');
});

test.each<[what: string, body: string | object, code: number, id?: unknown]>([
  ['no JSON', '{"jsonrpc":', -32700, null],
  ['nothing', '', -32700, null],
  ['a batch', JSON.stringify([call({ message: own })]), -32600, null],
  ['an empty batch', '[]', -32600, null],
  ['a string', '"hello"', -32600, null],
  ['no version of JSON-RPC', JSON.stringify({ id: 1, method: 'message/send' }), -32600, 1],
  ['JSON-RPC 1.0', JSON.stringify(call({}, { jsonrpc: '1.0' })), -32600],
  ['an id that is none', JSON.stringify(call({}, { id: {} })), -32600, null],
  ['no method', JSON.stringify({ jsonrpc: '2.0', id: 'a' }), -32600, 'a'],
  ['an unknown method', JSON.stringify(call({}, { method: 'message/paint' })), -32601],
  ['a method of A2A 1.0', JSON.stringify(call({}, { method: 'SendMessage' })), -32601],
  ['no params', JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'message/send' }), -32602],
  ['params in a list', [own], -32602],
  ['no message', {}, -32602],
  ['no parts', { message: { ...own, parts: [] } }, -32602],
  ['an unknown part', { message: { ...own, parts: [{ kind: 'smell' }] } }, -32602],
  ['no messageId', { message: { ...own, messageId: '' } }, -32602],
  ['an agent for its author', { message: { ...own, role: 'agent' } }, -32602],
  ['a negative historyLength', { message: own, configuration: { historyLength: -1 } }, -32602],
  ['parts of more than 256 KiB', { message: { ...own, ...text(big(262_145)) } }, -32602],
  ['metadata of more than 16 KiB', { message: own, metadata: { a: big(16_385) } }, -32602],
  ['message metadata of more than 16 KiB', { message: { ...own, metadata: { a: big(16_385) } } }, -32602],
  ['a deadline of two days', { message: own, metadata: { deadline_ms: 172_800_000 } }, -32602],
  ['args that are no object', { message: own, metadata: { args: [1] } }, -32602],
  ['args of more than 16 KiB', { message: own, metadata: { skill_id: 's', args: { a: big(16_385) } } }, -32602],
  ['args in the message that are no object', { message: { ...own, metadata: { args: 'x' } } }, -32602],
  [
    'a private address',
    { message: own, configuration: { pushNotificationConfig: { url: 'http://10.0.0.1/' } } },
    -32602,
  ],
  ['an unknown session', { message: { ...own, contextId: 'ses_x' } }, -32602],
  ['an unknown task', { message: { ...own, taskId: 'msg_x' } }, -32001],
])('%s: JSON-RPC error %# on HTTP 200', async (_what, given, code, id = 7) => {
  const answer = await post(typeof given === 'string' ? given : JSON.stringify(call(given)));
  const error = { code, message: expect.any(String) };
  expect(answer).toMatchObject({ status: 200, body: { jsonrpc: '2.0', id, error } });
  expect(answer.headers.get('x-request-id')).toMatch(/^\S{8,}$/);
  expect(answer.body).not.toHaveProperty('result');
});

test.each([
  ['none', '', { 'a2a-version': '1.1' }],
  ['none', '', { 'a2a-version': '1' }],
  ['none', '', { 'a2a-version': '0.2' }],
  ['none', '', { 'a2a-version': 'latest' }],
  ['0.3', '', { 'a2a-version': '0.3' }],
  ['0.3', '', { 'a2a-version': '0.3.0' }],
  ['0.3', '', { 'a2a-version': '' }],
  ['1.0', '?A2A-Version=1.0', {}],
  ['1.0', '?a2a-version=1.0.2', {}],
  ['1.0', '?A2A-Version=1.0', { 'a2a-version': '' }],
  ['1.0', '?A2A-Version=0.3', { 'a2a-version': '1.0' }],
  ['0.3', '?A2A-Version=1.0', { 'a2a-version': '0.3' }],
  ['0.3', '?A2A-Version=', {}],
  ['none', '?A2A-Version=2.0', {}],
  ['none', '?A2A-Version=1.0&A2A-Version=0.3', {}],
])('the version is %s for the query "%s" beside the header %j', async (spoken, query, version) => {
  const headers = { ...(await api.client.headers()), ...version };
  const tasks = { jsonrpc: '2.0', id: 7, method: 'ListTasks', params: {} };
  const answer = (await api.client.raw(`/send${query}`, JSON.stringify(tasks), headers)).body as RpcAnswer;
  if (spoken === '1.0') expect(answer.result).toMatchObject({ tasks: expect.any(Array) });
  else expect(answer.error?.code).toBe(spoken === '0.3' ? -32601 : -32009);
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
  const [id, contextId] = [expect.stringMatching(/^msg_/), expect.stringMatching(/^ses_/)];
  expect(first).toMatchObject({ kind: 'task', id, contextId, status: { state: 'submitted' } });
  expect(((await send(params, { id: null })).result as Task).id).toBe(first.id);
  const other = { ...params, message: { ...params.message, ...text('other') } };
  expect((await send(other)).error).toMatchObject({ code: -32602, data: { code: 'IDEMPOTENCY_MISMATCH' } });
});

// That its tasks are unknown too, by every method, is in the table of test/api/permissions.test.ts.
test("another tenant's session is unknown", async () => {
  const task = (await send({ message: message(), ...NOW })).result as Task;
  const other = await api.clientOf(await api.otherTenant(), ['full']);
  expect((await other.rpc('hello', { contextId: task.contextId })).error?.code).toBe(-32602);
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

test('a stream has an id for each event, whole JSON-RPC responses, and the id of the request in its head', async () => {
  const task = await api.client.send('hello', { blocking: false });
  await answerMessage(api, task.id, ASKS);
  const params = { message: message({ taskId: task.id, ...text('approved') }) };
  const response = await open(call(params, { method: 'message/stream', id: 'rpc-1' }), { 'x-request-id': 'stream-1' });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  expect(response.headers.get('x-request-id')).toBe('stream-1');
  await answerMessage(api, task.id, COMPLETED);
  const lines = await response.text();
  const ids = [...lines.matchAll(/^id: (\S+)$/gm)].map(([, id]) => id);
  expect(ids.length).toBeGreaterThan(1);
  expect(new Set(ids).size).toBe(ids.length);
  const answers = [...lines.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as object);
  expect(answers.length).toBe(ids.length);
  for (const answer of answers) expect(answer).toMatchObject({ jsonrpc: '2.0', id: 'rpc-1', result: {} });
});

test('a stream that cannot begin is a JSON-RPC error, as an event for whoever reads only a stream of 0.3', async () => {
  const params = { message: message({ contextId: 'ses_x' }) };
  const plain = await send(params, { method: 'message/stream' });
  expect(plain).toMatchObject({ status: 200, error: { code: -32602 } });
  expect(plain.headers.get('content-type')).toContain('application/json');
  const accept = 'text/event-stream';
  const response = await open(call(params, { method: 'message/stream', id: 'rpc-1' }), { accept }, '/send/');
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const [, data = ''] = /^data: (.*)$/m.exec(await response.text()) ?? [];
  expect(JSON.parse(data)).toMatchObject({ jsonrpc: '2.0', id: 'rpc-1', error: { code: -32602 } });
  const newer = await open(call({ id: 'msg_x' }, { method: 'SubscribeToTask' }), { accept, 'a2a-version': '1.0' });
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
