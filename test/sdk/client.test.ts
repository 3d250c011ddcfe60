import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import { readEvents } from '../../sdk/client/send/event-reader.js';
import { ApiError, FleetClient, UnreachableError } from '../../sdk/index.js';
import { SDK_VERSION } from '../../sdk/version.js';

type Answer = { status?: number; body?: object; text?: string; type?: string; cut?: boolean };
type Request = {
  path: string;
  body: Record<string, unknown>;
  authorization: string | undefined;
  lastEventId: string | undefined;
};

/** An API whose answers the test writes; `/auth/get_token` is answered here with a new token each time. */
async function api(answer: (request: Request) => Answer): Promise<{ client: FleetClient; requests: Request[] }> {
  const requests: Request[] = [];
  let tokens = 0;
  const reply = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const seen = {
      path: request.url ?? '',
      body: JSON.parse(text),
      authorization: request.headers.authorization,
      lastEventId: request.headers['last-event-id'] as string | undefined,
    };
    requests.push(seen);
    tokens += seen.path === '/auth/get_token' ? 1 : 0;
    const token = { token: `t${tokens}`, token_type: 'Bearer', expires_in: 3_600, scopes: ['full'] };
    const {
      status = 200,
      body,
      text: raw,
      type = 'application/json',
      cut = false,
    } = seen.path === '/auth/get_token' ? { body: token } : answer(seen);
    response.writeHead(status, { 'content-type': type, 'x-request-id': 'req-header' });
    if (!cut) response.end(raw ?? JSON.stringify(body));
    else response.write(raw ?? '', () => response.destroy());
  };
  const server = createServer((request, response) => void reply(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const client = new FleetClient({ url, clientId: 'c', clientSecret: 's', agentType: 'tester' });
  onTestFinished(() => client.close());
  return { client, requests };
}

const task = { kind: 'task', id: 'msg_1', contextId: 'ses_1', status: { state: 'completed' } };

test('asks for one token and uses it for every call', async () => {
  const { client, requests } = await api(() => ({ body: { ok: true } }));
  await Promise.all([client.post('/sessions/get'), client.post('/agents/get', { page: 2 })]);
  expect(requests.filter((request) => request.path === '/auth/get_token')).toHaveLength(1);
  expect(requests[0]?.body).toEqual({ client_id: 'c', client_secret: 's', agent_type: 'tester' });
  expect(requests.at(-1)?.authorization).toBe('Bearer t1');
});

test('renews a token that is refused, once', async () => {
  const { client, requests } = await api(({ authorization }) =>
    authorization === 'Bearer t1'
      ? { status: 401, body: { error: 'expired', code: 'unauthorized' } }
      : { body: { ok: true } },
  );
  expect(await client.post('/sessions/get')).toEqual({ ok: true });
  expect(requests.filter((request) => request.path === '/auth/get_token')).toHaveLength(2);
});

test('an error answer is an ApiError with status, code and request id', async () => {
  const { client } = await api(({ path }) =>
    path === '/proxy'
      ? { status: 502, text: '<html>', type: 'text/html' }
      : { status: 404, body: { error: 'no such session', code: 'NOT_FOUND', request_id: 'r1' } },
  );
  await expect(client.post('/sessions/get_by_id', { session_id: 'x' })).rejects.toMatchObject({
    name: 'ApiError',
    message: 'no such session',
    status: 404,
    code: 'NOT_FOUND',
    requestId: 'r1',
  });
  await expect(client.post('/proxy')).rejects.toMatchObject({ status: 502, code: 'HTTP_502', requestId: 'req-header' });
});

test('no answer is an UnreachableError', async () => {
  const client = new FleetClient({ url: 'http://127.0.0.1:1', clientId: 'c', clientSecret: 's' });
  onTestFinished(() => client.close());
  await expect(client.token()).rejects.toBeInstanceOf(UnreachableError);
});

test('send makes an A2A request and reads the task; a JSON-RPC error is an ApiError', async () => {
  const { client, requests } = await api(({ body }) =>
    (body.params as { metadata?: object }).metadata
      ? { body: { jsonrpc: '2.0', id: body.id, result: task } }
      : {
          body: {
            jsonrpc: '2.0',
            id: body.id,
            error: { code: -32602, message: 'other content', data: { code: 'IDEMPOTENCY_MISMATCH' } },
          },
        },
  );
  const sent = await client.send('hi', {
    contextId: 'ses_1',
    messageId: 'm1',
    agentType: 'x',
    blocking: false,
  });
  expect(sent.status.state).toBe('completed');
  expect(requests.at(-1)?.body).toMatchObject({
    jsonrpc: '2.0',
    method: 'message/send',
    params: {
      message: {
        kind: 'message',
        messageId: 'm1',
        role: 'user',
        contextId: 'ses_1',
        parts: [{ kind: 'text', text: 'hi' }],
      },
      configuration: { blocking: false },
      metadata: { agent_type: 'x' },
    },
  });
  const failure = await client.send('hi').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ApiError);
  expect(failure).toMatchObject({ status: 200, code: 'IDEMPOTENCY_MISMATCH', rpcCode: -32602 });
});

test('stream yields the events in order', async () => {
  const update = {
    kind: 'status-update',
    taskId: 'msg_1',
    contextId: 'ses_1',
    status: { state: 'completed' },
    final: true,
  };
  const sse = [task, update]
    .map((result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`)
    .join(': ping\n\n');
  const { client } = await api(() => ({ text: sse, type: 'text/event-stream' }));
  const events: StreamEvent[] = [];
  for await (const event of client.stream('hi')) events.push(event);
  expect(events.map((event) => event.kind)).toEqual(['task', 'status-update']);
});

test('waitFor goes on while the platform is away, and ends when the message has settled', async () => {
  const now = new Date().toISOString();
  const message = (state: string) => ({
    message_id: 'msg_1',
    session_id: 'ses_1',
    tenant_id: 'ten_1',
    role: 'user',
    state,
    created_at: now,
    updated_at: now,
    user_input: '',
    assistant_output: 'done',
    preview: '',
    parts: [],
    artifacts: [],
    attachments: [],
    instance_id: null,
    agent_type: null,
    root_agent: null,
    trace_id: '0'.repeat(32),
    task_data: task,
  });
  const answers: Answer[] = [
    { body: { ok: true, message: message('working') } },
    { status: 503, body: { error: 'down', code: 'SERVICE_UNAVAILABLE' } },
    { body: { ok: true, message: message('input-required') } },
  ];
  const { client } = await api(() => answers.shift() ?? { body: { ok: true, message: message('completed') } });
  expect((await client.messages.waitFor('msg_1')).state).toBe('input-required');
  expect((await client.messages.waitFor('msg_1', { until: 'terminal' })).assistantOutput).toBe('done');
});

test('a wait for a message, and a call, end in time where the platform does not answer', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const client = new FleetClient({ url, token: 't' });
  onTestFinished(() => client.close());
  await expect(client.messages.waitFor('msg_1', { timeoutMs: 50 })).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
  const hanging = new FleetClient({ url, token: () => new Promise<string>(() => undefined) });
  onTestFinished(() => hanging.close());
  const canceled = new AbortController();
  const call = hanging.messages.pending({}, { signal: canceled.signal });
  canceled.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
});

const update = (more: object) => ({ taskId: 'msg_1', contextId: 'ses_1', ...more });
const piece = (text: string) =>
  update({ kind: 'artifact-update', artifact: { artifactId: 'a', parts: [{ kind: 'text', text }] }, append: true });
const ending = update({ kind: 'status-update', status: { state: 'completed' }, final: true });
const started = { ...task, status: { state: 'working' } };
const sse = (...events: [string, object][]) =>
  events.map(([id, result]) => `id: ${id}\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`).join('');
const stream = (text: string, cut = false): Answer => ({ text, type: 'text/event-stream', cut });

async function streamed(client: FleetClient): Promise<string[]> {
  const events: string[] = [];
  for await (const event of client.stream('hi')) {
    events.push(event.kind === 'artifact-update' ? JSON.stringify(event.artifact.parts[0]) : event.kind);
  }
  return events;
}

test('a stream that breaks goes on after its last event, on another connection', async () => {
  const answers = [
    stream(sse(['1-0', started], ['1-1', piece('a')]), true),
    stream(sse(['1-2', piece('b')])),
    stream(sse(['1-3', ending])),
  ];
  const { client, requests } = await api(() => answers.shift() ?? {});
  const text = (value: string) => JSON.stringify({ kind: 'text', text: value });
  expect(await streamed(client)).toEqual(['task', text('a'), text('b'), 'status-update']);
  const sent = requests.filter(({ path }) => path === '/send');
  expect(sent.map(({ body }) => body.method)).toEqual(['message/stream', 'tasks/resubscribe', 'tasks/resubscribe']);
  expect(sent.map(({ lastEventId }) => lastEventId)).toEqual([undefined, '1-1', '1-2']);
  expect(sent[1]?.body.params).toEqual({ id: 'msg_1' });
});

test('a stream that breaks before its first event sends the same message again', async () => {
  const answers = [stream('', true), stream(sse(['1-0', { ...task }]))];
  const { client, requests } = await api(() => answers.shift() ?? {});
  expect(await streamed(client)).toEqual(['task']);
  const ids = requests
    .filter(({ path }) => path === '/send')
    .map(({ body }) => (body.params as { message: { messageId: string } }).message.messageId);
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(1);
});

/** Time passes only where the test says so; timers are real. */
function controlledClock(): (ms: number) => void {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  return (ms) => vi.advanceTimersByTime(ms);
}

const TEN_MINUTES_MS = 600_000;
const A_MINUTE_MS = 61_000;

test('a stream that was silent for ten minutes goes on when its connection breaks', async () => {
  const pass = controlledClock();
  const answers = [stream(sse(['1-0', started]), true), stream(sse(['1-1', ending]))];
  const { client } = await api(() => answers.shift() ?? {});
  const kinds: string[] = [];
  for await (const { kind } of client.stream('hi')) {
    kinds.push(kind);
    if (kind === 'task') pass(TEN_MINUTES_MS);
  }
  expect(kinds).toEqual(['task', 'status-update']);
});

test('a stream is given up when the platform was away for two minutes after the break', async () => {
  const pass = controlledClock();
  const away: Answer = { status: 503, body: { error: 'away', code: 'SERVICE_UNAVAILABLE' } };
  const answers = [stream(sse(['1-0', started]), true), away, away, stream(sse(['1-1', ending]))];
  const { client, requests } = await api(({ path }) => {
    if (path === '/send' && answers.length < 4) pass(A_MINUTE_MS);
    return answers.shift() ?? {};
  });
  await expect(streamed(client)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(requests.filter(({ path }) => path === '/send')).toHaveLength(3);
}, 15_000);

test('a stream ends with an error that a repeat does not change, and with its signal', async () => {
  const refusal = {
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32004, message: 'closed', data: { code: 'SESSION_CLOSED' } },
  };
  const { client, requests } = await api(() => ({ body: refusal }));
  await expect(streamed(client)).rejects.toMatchObject({ code: 'SESSION_CLOSED', rpcCode: -32004 });
  expect(requests.filter(({ path }) => path === '/send')).toHaveLength(1);

  const stop = new AbortController();
  const waiting = await api(() => stream(sse(['1-0', started]), true));
  const follow = async () => {
    for await (const _event of waiting.client.stream('hi', { signal: stop.signal })) stop.abort(new Error('enough'));
  };
  await expect(follow()).rejects.toThrow('enough');
});

test('send is repeated with the same messageId while the platform is away; what would be done twice is not', async () => {
  let attempts = 0;
  const { client, requests } = await api(({ path, body }) => {
    attempts += 1;
    if (attempts < 3) return { status: 503, body: { error: 'away', code: 'SERVICE_UNAVAILABLE' } };
    return path === '/send' ? { body: { jsonrpc: '2.0', id: body.id, result: task } } : { body: {} };
  });
  expect((await client.send('hi')).id).toBe('msg_1');
  const sent = requests.filter(({ path }) => path === '/send').map(({ body }) => JSON.stringify(body.params as object));
  expect(sent).toHaveLength(3);
  expect(new Set(sent).size).toBe(1);
  attempts = 0;
  await expect(client.sessions.init()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  await expect(client.messages.resolve('msg_1', { resolution: 'approved' })).rejects.toMatchObject({ status: 503 });
});

test.each([
  ['data: a\n\n', [['', 'a']]],
  ['id: 1\r\ndata: a\r\ndata:b\r\n\r\n', [['1', 'a\nb']]],
  [
    ': comment\n\nid: 2\ndata: a\n\ndata: b\n\n',
    [
      ['2', 'a'],
      ['2', 'b'],
    ],
  ],
  ['data: a\rid: 3\r\rdata: cut off', [['3', 'a']]],
  ['event: x\nretry: 5\ndata\n\n', [['', '']]],
  ['data: ä€😀\n\n', [['', 'ä€😀']]],
])('reads the events of %j, in whatever pieces it comes', async (text, expected) => {
  const bytes = Buffer.from(text);
  for (const size of [1, 3, bytes.length]) {
    const pieces = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    const events: string[][] = [];
    for await (const { id, data } of readEvents(pieces())) events.push([id, data]);
    expect(events).toEqual(expected);
  }
});

test('the version that agents tell is the package’s', () => {
  const file = new URL('../../sdk/package.json', import.meta.url);
  expect(SDK_VERSION).toBe((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version);
});
