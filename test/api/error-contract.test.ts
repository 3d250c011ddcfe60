import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { ErrorBody } from '../../contracts/primitives.js';
import type { Answer } from '../setup/platform/api-client.js';
import { joinOnRecord } from './moving.js';
import { serveApi } from './served-api.js';

const api = await serveApi();
/** Its limits are waited for. */
const hasty = await serveApi({ requestTimeoutMs: 500, sendWaitMs: 800 });

const OPERATION_LIST = Object.values<Operation>(OPERATIONS);
/** JSON-RPC: their errors ride on 200. */
const RPC_PATHS = [OPERATIONS.send.path, OPERATIONS.sendToType.path];
/** Those of operators of the platform take no token of a tenant. */
const JSON_POSTS = OPERATION_LIST.filter(
  ({ access, method, path }) => method === 'POST' && access !== 'operator' && !RPC_PATHS.some((rpc) => rpc === path),
);
const WITH_TOKEN = OPERATION_LIST.filter(({ access }) => access !== 'public' && access !== 'optional');
const JSON_TYPE = { 'content-type': 'application/json' };

function expectError(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, body: answer.body }).toEqual({ status, body: expect.objectContaining({ code }) });
  const body = ErrorBody.strict().parse(answer.body);
  expect(answer.headers.get('x-request-id')).toBe(body.request_id);
  expect(answer.headers.get('content-type')).toContain('application/json');
}

/** What a raw HTTP/1.1 exchange answers. */
async function exchange(bytes: string | Buffer, { port } = api): Promise<{ status: number; body: unknown }> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(bytes);
  const answer = await text(socket);
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
  return { status: Number(head.split(' ')[1]), body: JSON.parse(body) };
}

test.each([
  ['POST', '/nowhere'],
  ['GET', '/nowhere'],
  ['POST', '/messages/a/b/resolve'],
  ['DELETE', '/sessions'],
])('%s %s is unknown: 404', async (method, path) => {
  expectError(await api.client.raw(path, null, {}, method), 404, 'NOT_FOUND');
});

test('every operation takes only its method: 405 with Allow', async () => {
  for (const { path, method } of OPERATION_LIST) {
    const answer = await api.client.raw(path.replace(/:\w+/, 'x'), null, {}, 'DELETE');
    expectError(answer, 405, 'METHOD_NOT_ALLOWED');
    expect(answer.headers.get('allow')).toContain(method);
  }
});

test('OPTIONS names the methods and opens nothing to other origins', async () => {
  const answer = await api.client.raw('/sessions/get', null, { origin: 'https://elsewhere.example' }, 'OPTIONS');
  expect(answer.status).toBe(204);
  expect(answer.headers.get('allow')).toBe('POST, OPTIONS');
  expect(answer.headers.get('access-control-allow-origin')).toBeNull();
});

test('every operation that needs a token answers 401 without one, before anything of the body is looked at', async () => {
  for (const { path } of WITH_TOKEN) {
    const answer = await api.client.raw(path, '{"broken', { 'content-type': 'text/plain' });
    expectError(answer, 401, 'unauthorized');
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  }
});

test('403 comes before 400', async () => {
  const reader = await api.clientOf(api.tenantId, ['read']);
  expectError(await reader.raw('/credentials/create', '{"broken', await reader.headers()), 403, 'forbidden');
});

const DEEP = 100_000;
const BAD_BODIES: [string, string][] = [
  ['malformed', '{"a":'],
  ['an array', '[]'],
  ['a null', 'null'],
  ['a string', '"text"'],
  ['100,000 deep arrays', '['.repeat(DEEP) + ']'.repeat(DEEP)],
  ['33 deep', `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`],
  ['__proto__', '{"__proto__":{"admin":true}}'],
  ['NUL in a string', '{"a":"x\\u0000y"}'],
  ['an unknown field', '{"no_such_field":1}'],
];

/** Two of those that share one parser; the second takes larger bodies. */
const PARSED = ['/sessions/get', '/knowledge_base/ingest'];

test.each(BAD_BODIES)('a body with %s: 400', async (_what, body) => {
  for (const path of PARSED)
    expectError(await api.client.raw(path, body, await api.client.headers()), 400, 'BAD_REQUEST');
});

test('every operation parses its body strictly and wants JSON', async () => {
  const headers = await api.client.headers();
  for (const { path: route } of JSON_POSTS) {
    const path = route.replace(/:\w+/, 'msg_x');
    expectError(await api.client.raw(path, '{"no_such_field":1}', headers), 400, 'BAD_REQUEST');
    expectError(await api.client.raw(path, '{}', { ...headers, 'content-type': 'text/plain' }), 400, 'BAD_REQUEST');
  }
});

test.each([
  ['without a content type', '', '{}'],
  ['that is not UTF-8', 'Content-Type: application/json\r\n', '{"status":"\xff"}'],
])('a body %s: 400', async (_what, type, body) => {
  const { authorization } = (await api.client.headers()) as { authorization: string };
  const head = `POST /sessions/get HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n${type}Connection: close\r\n`;
  const answer = await exchange(Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, 'latin1'));
  expect(answer).toEqual({ status: 400, body: expect.objectContaining({ code: 'BAD_REQUEST' }) });
});

test('a body that does not fit names the field', async () => {
  for (const [path, field, body] of [
    ['/sessions/get', 'page_size', { page_size: 101 }],
    ['/agents/heartbeat', 'colour', { instance_id: 'a', colour: 'red' }],
  ] as const)
    expect((await api.client.post(path, body)).body).toMatchObject({ error: expect.stringContaining(field) });
});

test('a form instead of JSON: 400', async () => {
  expectError(await api.client.raw('/auth/get_token', 'client_id=a', JSON_TYPE), 400, 'BAD_REQUEST');
});

test('an empty body counts as {} only where no field is required', async () => {
  const headers = await api.client.headers();
  expect((await api.client.raw('/sessions/get', '', headers)).status).toBe(200);
  expectError(await api.client.raw('/sessions/close', '', headers), 400, 'BAD_REQUEST');
});

/** Calls that take documents in have another limit. */
test.each([
  ['/sessions/get', 1],
  ['/send', 1],
  ['/knowledge_base/new', 32],
  ['/knowledge_base/ingest', 32],
] as const)('%s with more than %i MiB: 413', async (path, mib) => {
  const body = JSON.stringify({ a: 'x'.repeat(mib * 1024 * 1024) });
  const answer = await api.client.raw(path, body, await api.client.headers());
  expectError(answer, 413, 'PAYLOAD_TOO_LARGE');
  expect(answer.body).toMatchObject({ error: `The body has more than ${mib * 1024 * 1024} bytes.` });
});

test('only the operations that take documents in have a limit of their own', () => {
  const larger = OPERATION_LIST.filter(({ bodyBytes }) => bodyBytes !== undefined).map(({ path }) => path);
  expect(larger.sort()).toEqual(['/knowledge_base/ingest', '/knowledge_base/new']);
});

test('X-Request-Id is echoed when it is sane, made when it is not', async () => {
  const sane = await api.client.raw('/nowhere', null, { 'x-request-id': 'call-7' });
  expect(sane.headers.get('x-request-id')).toBe('call-7');
  for (const wild of ['x'.repeat(129), 'two words', '\u00e9']) {
    const { headers } = await api.client.raw('/health', null, { 'x-request-id': wild }, 'GET');
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  }
});

test.each(['/health', '/openapi.json', '/.well-known/jwks.json', '/.well-known/agent-card.json'])(
  '%s answers HEAD',
  async (path) => {
    expect((await api.client.raw(path, null, {}, 'HEAD')).status).toBe(200);
  },
);

test.each(['/%zz', '/messages/%00/resolve', `/messages/${'x'.repeat(5_000)}/resolve`, '/messages/%E0%A4%A/resolve'])(
  'a wild path %# is answered in the one form',
  async (path) => {
    const answer = await api.client.raw(path, '{"resolution":"approved"}', await api.client.headers());
    expect([400, 404]).toContain(answer.status);
    ErrorBody.strict().parse(answer.body);
  },
);

const POST_HEAD = 'POST /auth/get_token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
test.each([
  ['both lengths', `${POST_HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400, 'BAD_REQUEST'],
  ['no HTTP', 'hello\r\n\r\n', 400, 'BAD_REQUEST'],
  ['too many headers', `GET /health HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'BAD_REQUEST'],
  ['a body that never comes', `${POST_HEAD}Content-Length: 40\r\n\r\n{"a`, 408, 'REQUEST_TIMEOUT'],
  ['a head that never ends', 'GET /health HTTP/1.1\r\nHost: x\r\n', 408, 'REQUEST_TIMEOUT'],
])('%s on the wire is answered in the one form', async (_what, bytes, status, code) => {
  const answer = await exchange(bytes, status === 408 ? hasty : api);
  expect(answer).toEqual({ status, body: expect.objectContaining({ code }) });
  ErrorBody.strict().parse(answer.body);
});

test('/agents/connect on the address without TLS: 426', async () => {
  expectError(await api.client.get('/agents/connect?instance_id=a'), 426, 'UPGRADE_REQUIRED');
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  const answer = await exchange(`GET /agents/connect?instance_id=a HTTP/1.1\r\nHost: x\r\n${upgrade}\r\n`);
  expect(answer).toEqual({ status: 426, body: expect.objectContaining({ code: 'UPGRADE_REQUIRED' }) });
});

test('an unexpected error is 500 without its details', async () => {
  await api.database.query('ALTER TABLE event_groups RENAME TO event_groups_away');
  try {
    const answer = await api.client.post('/telemetry/get_events', {});
    expectError(answer, 500, 'INTERNAL_ERROR');
    expect(JSON.stringify(answer.body)).not.toMatch(/events|relation|sql/i);
  } finally {
    await api.database.query('ALTER TABLE event_groups_away RENAME TO event_groups');
  }
});

test('a caller who waits for an answer is not cut by the time limit for requests', async () => {
  await joinOnRecord(hasty, 'worker-1');
  const task = await hasty.client.send('hello', { metadata: { agent_type: 'worker' } });
  expect(task.status.state).toBe('submitted');
});
