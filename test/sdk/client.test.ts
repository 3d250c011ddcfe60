import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { readEvents } from '../../sdk/client/send/event-reader.js';
import {
  ApiError,
  ClientClosedError,
  FleetClient,
  type FleetClientOptions,
  hasEnded,
  isTransient,
  isWaiting,
  UnreachableError,
} from '../../sdk/index.js';
import { SDK_VERSION } from '../../sdk/version.js';
import { answering, Reply, type SeenRequest } from './answering.js';

function clientOf(options: FleetClientOptions): FleetClient {
  const client = new FleetClient(options);
  onTestFinished(() => client.close());
  return client;
}

/** An API whose answers the test writes; `/auth/get_token` is answered here with a new token each time. */
async function api(answer: (request: SeenRequest, authorization: string) => object | string) {
  let tokens = 0;
  const newToken = () => {
    tokens += 1;
    return { token: `t${tokens}`, token_type: 'Bearer', expires_in: 3_600, scopes: ['full'] };
  };
  const server = await answering((request, authorization) =>
    request.path === '/auth/get_token' ? newToken() : answer(request, authorization),
  );
  const client = clientOf({ url: `${server.url}/`, clientId: 'c', clientSecret: 's', agentType: 'tester' });
  const sent = (path: string) => server.requests.filter((request) => request.path === path);
  return { client, sent, ...server };
}

const task = { kind: 'task', id: 'msg_1', contextId: 'ses_1', status: { state: 'completed' } };
const away = new Reply({ error: 'away', code: 'SERVICE_UNAVAILABLE' }, { status: 503 });
const rpc = (result: object) => ({ jsonrpc: '2.0', id: 1, result });
const now = new Date().toISOString();
const message = (state: string) => ({
  ok: true,
  message: {
    ...{ message_id: 'msg_1', session_id: 'ses_1', tenant_id: 'ten_1', role: 'user', state, task_data: task },
    ...{ created_at: now, updated_at: now, user_input: '', assistant_output: 'done', preview: '' },
    ...{ parts: [], artifacts: [], attachments: [], trace_id: '0'.repeat(32) },
    ...{ instance_id: null, agent_type: null, root_agent: null },
  },
});
const rpcError = (code: number, message: string, name: string) => {
  return { jsonrpc: '2.0', id: 1, error: { code, message, data: { code: name } } };
};

test('asks for one token and uses it for every call; renews one that is refused, once', async () => {
  const expired = new Reply({ error: 'expired', code: 'unauthorized' }, { status: 401 });
  let isExpired = false;
  const { client, sent, authorizations } = await api((_request, authorization) =>
    isExpired && authorization === 'Bearer t1' ? expired : { ok: true },
  );
  await Promise.all([client.post('/sessions/get'), client.post('/agents/get', { page: 2 })]);
  expect(sent('/auth/get_token').map(({ body }) => body)).toEqual([
    { client_id: 'c', client_secret: 's', agent_type: 'tester' },
  ]);
  expect(authorizations.at(-1)).toBe('Bearer t1');
  isExpired = true;
  expect(await client.post('/sessions/get')).toEqual({ ok: true });
  expect(sent('/auth/get_token')).toHaveLength(2);
});

test('an error answer is an ApiError with status, code and request id; no answer is an UnreachableError', async () => {
  const notFound = { error: 'no such session', code: 'NOT_FOUND', request_id: 'r1' };
  const { client } = await api(({ path }) =>
    path === '/proxy' ? new Reply('<html>', { status: 502, type: 'text/html' }) : new Reply(notFound, { status: 404 }),
  );
  await expect(client.post('/sessions/get_by_id', { session_id: 'x' })).rejects.toMatchObject({
    name: 'ApiError',
    message: 'no such session',
    status: 404,
    code: 'NOT_FOUND',
    requestId: 'r1',
  });
  await expect(client.post('/proxy')).rejects.toMatchObject({ status: 502, code: 'HTTP_502', requestId: 'req-header' });
  const unreachable = clientOf({ url: 'http://127.0.0.1:1', clientId: 'c', clientSecret: 's' });
  await expect(unreachable.token()).rejects.toBeInstanceOf(UnreachableError);
});

test('send makes an A2A request and reads the task; a JSON-RPC error is an ApiError', async () => {
  const { client, sent } = await api(({ body }) =>
    body.params.metadata ? rpc(task) : rpcError(-32602, 'other content', 'IDEMPOTENCY_MISMATCH'),
  );
  const options = { contextId: 'ses_1', messageId: 'm1', agentType: 'x', blocking: false };
  expect((await client.send('hi', options)).status.state).toBe('completed');
  const parts = [{ kind: 'text', text: 'hi' }];
  expect(sent('/send')[0]?.body).toMatchObject({
    jsonrpc: '2.0',
    method: 'message/send',
    params: {
      message: { kind: 'message', messageId: 'm1', role: 'user', contextId: 'ses_1', parts },
      configuration: { blocking: false },
      metadata: { agent_type: 'x' },
    },
  });
  const failure = await client.send('hi').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ApiError);
  const requestId = 'req-header';
  expect(failure).toMatchObject({ status: 409, code: 'IDEMPOTENCY_MISMATCH', rpcCode: -32602, requestId });
});

test('the path of an address is kept', async () => {
  const { url, requests } = await answering(() => rpc(task));
  await clientOf({ url: `${url}/fleet/`, token: 't' }).send('hi');
  expect(requests[0]?.path).toBe('/fleet/send');
});

test('a body that the platform would not take is not sent, and the error names the limit', async () => {
  const { client, sent } = await api(() => rpc(task));
  await expect(client.send('x'.repeat(5_000_000))).rejects.toMatchObject({
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
    message: expect.stringMatching(/50\d{5} bytes, and the platform takes at most 1048576: send the URI/),
  });
  expect(sent('/send')).toEqual([]);
});

test('waitFor goes on while the platform is away, and ends when the message has settled', async () => {
  const answers = [message('working'), away, message('input-required')];
  const { client } = await api(() => answers.shift() ?? message('completed'));
  expect((await client.messages.waitFor('msg_1')).state).toBe('input-required');
  expect((await client.messages.waitFor('msg_1', { until: 'terminal' })).assistantOutput).toBe('done');
});

test('a wait for a message, a call, and a message that is sent end where the platform does not answer', async () => {
  const stop = new AbortController();
  const enough = new Error('enough');
  const { url } = await answering(({ path }) => {
    if (path === '/send') stop.abort(enough);
    return new Promise<object>(() => undefined);
  });
  const client = clientOf({ url, token: 't' });
  await expect(client.messages.waitFor('msg_1', { timeoutMs: 50 })).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
  await expect(client.send('sleep', { signal: stop.signal })).rejects.toThrow('enough');
  const hanging = clientOf({ url, token: () => new Promise<string>(() => undefined) });
  const canceled = new AbortController();
  const call = hanging.messages.pending({}, { signal: canceled.signal });
  canceled.abort(enough);
  await expect(call).rejects.toThrow('enough');
});

const update = (more: object) => ({ taskId: 'msg_1', contextId: 'ses_1', ...more });
const piece = (text: string) =>
  update({ kind: 'artifact-update', artifact: { artifactId: 'a', parts: [{ kind: 'text', text }] }, append: true });
const ending = update({ kind: 'status-update', status: { state: 'completed' }, final: true });
const started = { ...task, status: { state: 'working' } };
const sse = (...events: [string, object][]) =>
  events.map(([id, result]) => `id: ${id}\ndata: ${JSON.stringify(rpc(result))}\n\n`).join(': ping\n\n');
const cutOff = (text: string) => new Reply(text, { cut: true });

async function streamed(client: FleetClient, signal?: AbortSignal): Promise<string[]> {
  const events: string[] = [];
  for await (const event of client.stream('hi', signal && { signal })) {
    const part = event.kind === 'artifact-update' && event.artifact.parts[0];
    events.push(part && part.kind === 'text' ? part.text : event.kind);
  }
  return events;
}

test('a stream that breaks goes on after its last event, on another connection', async () => {
  const answers = [cutOff(sse(['1-0', started], ['1-1', piece('a')])), sse(['1-2', piece('b')]), sse(['1-3', ending])];
  const { client, sent } = await api(() => answers.shift() ?? {});
  expect(await streamed(client)).toEqual(['task', 'a', 'b', 'status-update']);
  const again = { method: 'tasks/resubscribe', params: { id: 'msg_1' } };
  expect(sent('/send').map(({ lastEventId }) => lastEventId)).toEqual([undefined, '1-1', '1-2']);
  expect(sent('/send').map(({ body }) => body)).toMatchObject([{ method: 'message/stream' }, again, again]);
});

test('throughQuestions: a stream goes on, and a send waits, while a human answers', async () => {
  const asking = update({ kind: 'status-update', status: { state: 'input-required' }, final: true });
  const streams = [sse(['1-0', started], ['1-1', asking]), sse(['1-2', piece('a')], ['1-3', ending])];
  const states = ['input-required', 'working', 'input-required', 'completed'];
  const waits = { ...task, status: { state: 'input-required' } };
  const { client, sent } = await api(({ path, body }) => {
    if (path !== '/send') return message(states.shift() ?? '');
    if (body.method === 'message/send') return rpc(waits);
    return body.method === 'tasks/get' ? rpc(task) : (streams.shift() ?? {});
  });
  const kinds: string[] = [];
  for await (const { kind } of client.stream('hi', { throughQuestions: true })) kinds.push(kind);
  expect(kinds).toEqual(['task', 'status-update', 'artifact-update', 'status-update']);
  expect(sent('/send').at(-1)).toMatchObject({ lastEventId: '1-1', body: { method: 'tasks/resubscribe' } });
  const answered = await client.send('hi', { throughQuestions: true });
  const state: 'completed' | 'failed' | 'canceled' | 'rejected' = answered.status.state;
  expect(state).toBe('completed');
  expect(sent('/messages/get_by_id')).toHaveLength(4);
  const asked = await client.send('hi');
  expect([hasEnded(asked), isWaiting(asked), sent('/send').at(-1)?.body.params.metadata]).toEqual([
    false,
    true,
    undefined,
  ]);
});

test('a stream that breaks before its first event sends the same message again', async () => {
  const answers = [cutOff(''), sse(['1-0', task])];
  const { client, sent } = await api(() => answers.shift() ?? {});
  expect(await streamed(client)).toEqual(['task']);
  const [first, second] = sent('/send').map(({ body }) => body.params.message.messageId);
  expect(first).toEqual(expect.any(String));
  expect(second).toBe(first);
});

test('a stream ends with an error that a repeat does not change, and with its signal', async () => {
  const { client, sent } = await api(() => rpcError(-32004, 'closed', 'SESSION_CLOSED'));
  await expect(streamed(client)).rejects.toMatchObject({ code: 'SESSION_CLOSED', rpcCode: -32004 });
  expect(sent('/send')).toHaveLength(1);

  const stop = new AbortController();
  const waiting = await api(() => {
    if (waiting.sent('/send').length === 2) stop.abort(new Error('enough'));
    return cutOff(sse(['1-0', started]));
  });
  await expect(streamed(waiting.client, stop.signal)).rejects.toThrow('enough');
});

test('send is repeated with the same messageId while the platform is away; what would be done twice is not', async () => {
  let attempts = 0;
  const { client, sent } = await api(({ path }) => {
    attempts += 1;
    if (attempts < 3) return away;
    return path === '/send' ? rpc(task) : {};
  });
  expect((await client.send('hi')).id).toBe('msg_1');
  const [first, ...others] = sent('/send').map(({ body }) => body.params);
  expect(others).toEqual([first, first]);
  attempts = 0;
  await expect(client.sessions.init()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  await expect(client.messages.resolve('msg_1', { resolution: 'approved' })).rejects.toMatchObject({ status: 503 });
});

test.each([
  ['data: a\n\n', '=a'],
  ['id: 1\r\ndata: a\r\ndata:b\r\n\r\n', '1=a\nb'],
  [': comment\n\nid: 2\ndata: a\n\ndata: b\n\n', '2=a,2=b'],
  ['data: a\rid: 3\r\rdata: cut off', '3=a'],
  ['event: x\nretry: 5\ndata\n\n', '='],
  ['data: ä€😀\n\n', '=ä€😀'],
])('reads the events of %j, in whatever pieces it comes', async (text, expected) => {
  const bytes = Buffer.from(text);
  for (const size of [1, 3, bytes.length]) {
    const pieces = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    const events: string[] = [];
    for await (const { id, data } of readEvents(pieces())) events.push(`${id}=${data}`);
    expect(events.join()).toBe(expected);
  }
});

test('the version that agents tell is the package’s', () => {
  const file = new URL('../../sdk/package.json', import.meta.url);
  expect(SDK_VERSION).toBe((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version);
});

test('a call of a closed client fails at once, and is not tried again', async () => {
  const { client, requests } = await api(() => ({ ok: true }));
  client.close();
  const error = await client.messages.get().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ClientClosedError);
  expect([isTransient(error), requests.length]).toEqual([false, 0]);
});

test('an object in place of the id of a path is refused', async () => {
  const { client, requests } = await api(() => ({ ok: true }));
  // @ts-expect-error the id is the first argument, and the request the second
  const resolve = () => client.messages.resolve({ messageId: 'msg_1', resolution: 'approved' });
  expect(resolve).toThrow(/^id must be a text that is not empty/);
  expect(requests).toEqual([]);
});
