import { EventSourceParserStream } from 'eventsource-parser/stream';
import { beforeAll, describe, expect, test } from 'vitest';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

interface Task1 {
  id: string;
  contextId: string;
  status: { state: string; timestamp: string; message?: { parts: object[]; role: string } };
  artifacts?: { parts: object[] }[];
  history?: { messageId: string; role: string; parts: object[] }[];
  metadata?: Record<string, unknown>;
}
interface Answer1 {
  result?: { task?: Task1; [member: string]: unknown };
  error?: { code: number; message: string; data: [{ reason: string; domain: string; metadata?: object }] };
}

async function post(body: object, version = '1.0'): Promise<Response> {
  const headers = { ...(await api.client.headers()), 'a2a-version': version };
  return fetch(`${api.baseUrl}/send`, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function call(method: string, params: unknown, version?: string): Promise<Answer1> {
  const response = await post({ jsonrpc: '2.0', id: 'one', method, params }, version);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer1;
}

/** A call that gives a task. */
async function task(method: string, params: unknown): Promise<Task1> {
  const { result, error } = await call(method, params);
  expect(error).toBeUndefined();
  return (result?.task ?? result) as Task1;
}

async function events(response: Response): Promise<Record<string, unknown>[]> {
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const found: Record<string, unknown>[] = [];
  if (!response.body) return found;
  for await (const event of response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())) {
    const answer = JSON.parse(event.data) as { id: string; result: Record<string, unknown> };
    expect(answer).toMatchObject({ jsonrpc: '2.0', id: 'one' });
    found.push(answer.result);
  }
  return found;
}

let count = 0;
const TEXT = [{ text: 'hello' }];
const message = (change: object = {}) => ({ messageId: `v1-${++count}`, role: 'ROLE_USER', parts: TEXT, ...change });
const NOW = { configuration: { returnImmediately: true } };
const send = (change: object = {}) => task('SendMessage', { message: message(change), ...NOW });

test('SendMessage waits for the answer and gives {task}, without kind and in camelCase', async () => {
  const newMessage = await api.nextMessage();
  const waiting = call('SendMessage', { message: message() });
  const id = await newMessage();
  await answerMessage(api, id, COMPLETED);
  const { result } = await waiting;
  expect(Object.keys(result ?? {})).toEqual(['task']);
  expect(result?.task).toEqual({
    id,
    contextId: expect.stringMatching(/^ses_/),
    status: { state: 'TASK_STATE_COMPLETED', timestamp: expect.stringMatching(/^\d{4}-.*Z$/) },
    artifacts: [{ artifactId: 'a', parts: [{ text: 'done' }] }],
    history: [{ messageId: `v1-${count}`, role: 'ROLE_USER', parts: TEXT, taskId: id, contextId: expect.any(String) }],
    metadata: { agentType: 'worker', instanceId: 'worker-1', traceId: expect.any(String) },
  });
});

const PARTS = [
  { text: 'plain' },
  { text: '# title', mediaType: 'text/markdown' },
  { text: 'with more', metadata: { a: 1 } },
  { raw: 'aGVsbG8=', filename: 'hello.txt', mediaType: 'text/plain' },
  { url: 'https://files.example/a.pdf', mediaType: 'application/pdf', metadata: { pages: 3 } },
  { data: { a: [1, { b: null }] } },
  { data: [1, 2], metadata: { unit: 'm' } },
  { data: null },
  { data: 'word' },
];
test('parts of every kind come back as they were sent', async () => {
  const sent = await send({ parts: PARTS });
  expect(sent.history?.[0]?.parts).toEqual(PARTS);
  const kept = await api.client.message(sent.id);
  expect(kept.parts.map(({ kind }) => kind).join(' ')).toBe('text text text file file data data data data');
  expect(kept.parts[3]).toMatchObject({ file: { bytes: 'aGVsbG8=', name: 'hello.txt', mimeType: 'text/plain' } });
});

test('names as the proto spells them and members that are null are understood', async () => {
  const sent = await task('SendMessage', {
    tenant: 'somebody-else', // who that is, the token says
    message: { message_id: `v1-${++count}`, role: 'ROLE_USER', parts: [{ text: 'x', media_type: null }], task_id: '' },
    configuration: { return_immediately: true, history_length: 0 },
    metadata: null,
  });
  expect(sent).toMatchObject({ status: { state: 'TASK_STATE_SUBMITTED' } });
  expect(sent).not.toHaveProperty('history');
  expect((await api.client.message(sent.id)).tenant_id).toBe(api.tenantId);
});

describe('a task', () => {
  test('is read with as much of its history as is wanted', async () => {
    const sent = await send();
    await answerMessage(api, sent.id, ASKS);
    const asked = await task('GetTask', { id: sent.id });
    expect(asked.status).toMatchObject({ state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT' } });
    expect(asked.history?.map(({ role }) => role)).toEqual(['ROLE_USER', 'ROLE_AGENT']);
    expect((await task('GetTask', { id: sent.id, historyLength: 1 })).history).toMatchObject([{ role: 'ROLE_AGENT' }]);
    expect(await task('GetTask', { id: sent.id, historyLength: 0 })).not.toHaveProperty('history');
  });

  test('is canceled once', async () => {
    const { id } = await send();
    expect(await task('CancelTask', { id })).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELED' } });
    const type = 'type.googleapis.com/google.rpc.ErrorInfo';
    const info = { '@type': type, reason: 'TASK_NOT_CANCELABLE', domain: 'a2a-protocol.org' };
    const data = [{ ...info, metadata: { code: 'ALREADY_TERMINAL' } }];
    expect((await call('CancelTask', { id })).error).toMatchObject({ code: -32002, data });
    expect((await call('SubscribeToTask', { id })).error?.code).toBe(-32004);
    expect((await call('SendMessage', { message: message({ taskId: id }) })).error?.code).toBe(-32004);
  });
});

test('SendStreamingMessage gives the task, pieces of artifacts and states, each in its envelope', async () => {
  const newMessage = await api.nextMessage();
  const params = { message: message() };
  const reading = post({ jsonrpc: '2.0', id: 'one', method: 'SendStreamingMessage', params }).then(events);
  const id = await newMessage();
  await answerMessage(api, id, COMPLETED);
  const found = await reading;
  expect(found.map((event) => Object.keys(event).join())).toEqual(
    expect.arrayContaining(['task', 'artifactUpdate', 'statusUpdate']),
  );
  expect(Object.keys(found[0] ?? {})).toEqual(['task']);
  expect(JSON.stringify(found)).not.toContain('"final"');
  expect(found.at(-1)).toMatchObject({ statusUpdate: { contextId: expect.any(String), metadata: expect.any(Object) } });
});

const INVALID = [-32602, 'INVALID_PARAMS'] as const;
const UNKNOWN = [-32001, 'TASK_NOT_FOUND'] as const;
const NO_METHOD = [-32601, 'METHOD_NOT_FOUND'] as const;
const saying = (change: object) => ({ message: message(change) });
test.each<[string, string, unknown, readonly [number, string]]>([
  ['an unknown task', 'GetTask', { id: 'msg_x' }, UNKNOWN],
  ['an unknown task', 'CancelTask', { id: 'msg_x' }, UNKNOWN],
  ['an unknown task', 'SubscribeToTask', { id: 'msg_x' }, UNKNOWN],
  ['an unknown task', 'SendMessage', saying({ taskId: 'msg_x' }), UNKNOWN],
  ['a name of 0.3', 'message/send', saying({}), NO_METHOD],
  ['a name of 0.3', 'tasks/get', { id: 'msg_x' }, NO_METHOD],
  ['no id', 'GetTask', {}, INVALID],
  ['no params', 'SendMessage', undefined, INVALID],
  ['no parts', 'SendMessage', saying({ parts: [] }), INVALID],
  ['an empty part', 'SendMessage', saying({ parts: [{}] }), INVALID],
  ['two contents', 'SendMessage', saying({ parts: [{ text: 'a', url: 'b' }] }), INVALID],
  ['no base64', 'SendMessage', saying({ parts: [{ raw: '%' }] }), INVALID],
  ['a role of 0.3', 'SendMessage', saying({ role: 'user' }), INVALID],
  ['an agent for its author', 'SendMessage', saying({ role: 'ROLE_AGENT' }), INVALID],
  ['a negative historyLength', 'GetTask', { id: 'msg_x', historyLength: -1 }, INVALID],
  ['another context', 'SendMessage', saying({ contextId: 'ses_x' }), INVALID],
  ['pages of none', 'ListTasks', { pageSize: 0 }, INVALID],
  ['pages of 101', 'ListTasks', { pageSize: 101 }, INVALID],
  ['a page token that is none', 'ListTasks', { pageToken: 'nonsense' }, INVALID],
  ['a state of 0.3', 'ListTasks', { status: 'completed' }, INVALID],
  ['a negative historyLength', 'ListTasks', { historyLength: -1 }, INVALID],
  ['a time that is none', 'ListTasks', { statusTimestampAfter: 'yesterday' }, INVALID],
])('%s for %s: JSON-RPC error %# with its reason', async (_what, method, params, [code, reason]) => {
  const { error, result } = await call(method, params);
  expect(result).toBeUndefined();
  expect(error).toMatchObject({ code, data: [{ reason, domain: 'a2a-protocol.org' }] });
});

test('a task of another context is not answered in this one', async () => {
  const { id } = await send();
  await answerMessage(api, id, ASKS);
  const { contextId } = await send();
  expect((await call('SendMessage', saying({ taskId: id, contextId }))).error?.code).toBe(-32602);
});

test('a content type other than JSON is -32005, and HTTP 400 in 0.3', async () => {
  const { authorization } = (await api.client.headers()) as { authorization: string };
  const headers = { authorization, 'content-type': 'text/plain', 'a2a-version': '1.0' };
  const answer = await api.client.raw('/send', 'hello', headers);
  expect(answer).toMatchObject({
    status: 200,
    body: { id: null, error: { code: -32005, data: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }] } },
  });
  const inVersion03 = await api.client.raw('/send', 'hello', { authorization, 'content-type': 'text/plain' });
  expect(inVersion03).toMatchObject({ status: 400, body: { code: 'BAD_REQUEST' } });
});

describe('ListTasks', () => {
  let session: string;
  const ids: string[] = [];
  beforeAll(async () => {
    for (let sent = 0; sent < 5; sent++) {
      const made = await send(sent === 0 ? {} : { contextId: session });
      session = made.contextId;
      ids.push(made.id);
    }
    await answerMessage(api, ids[1] as string, COMPLETED);
    await answerMessage(api, ids[0] as string, ASKS);
  });
  const list = async (params: object) => {
    const { result, error } = await call('ListTasks', { contextId: session, ...params });
    expect(error).toBeUndefined();
    return result as unknown as { tasks: Task1[]; nextPageToken: string; pageSize: number; totalSize: number };
  };

  test('gives the newest status first, without artifacts', async () => {
    const { tasks, ...page } = await list({});
    expect(tasks.map(({ id }) => id)).toEqual([ids[0], ids[1], ids[4], ids[3], ids[2]]);
    expect(page).toEqual({ nextPageToken: '', pageSize: 50, totalSize: 5 });
    for (const one of tasks) expect(one).not.toHaveProperty('artifacts');
    expect(tasks[0]?.status).toMatchObject({ state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT' } });
  });

  test('filters by state, time and context, and gives what is asked for', async () => {
    const done = await list({ status: 'TASK_STATE_COMPLETED', includeArtifacts: true, historyLength: 0 });
    expect(done.tasks).toMatchObject([{ id: ids[1], artifacts: [{ parts: [{ text: 'done' }] }] }]);
    expect(done.tasks[0]).not.toHaveProperty('history');
    expect((await list({ status: 'TASK_STATE_REJECTED' })).totalSize).toBe(0);
    const newest = (await list({ pageSize: 1 })).tasks[0]?.status.timestamp;
    expect((await list({ statusTimestampAfter: newest })).tasks.map(({ id }) => id)).toContain(ids[0]);
    expect((await list({ statusTimestampAfter: '2999-01-01T00:00:00Z' })).tasks).toEqual([]);
    expect((await list({ contextId: 'ses_x' })).tasks).toEqual([]);
    const page = await list({ contextId: undefined, context_id: session, page_size: 1 });
    expect(page).toMatchObject({ pageSize: 1, totalSize: 5 });
  });

  test('needs no params, and 0.3 has no such method', async () => {
    expect((await call('ListTasks', undefined)).result).toMatchObject({ pageSize: 50 });
    expect((await call('tasks/list', {}, '0.3')).error?.code).toBe(-32601);
  });
});
