import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { LIMITS } from '../../contracts/limits.js';
import { readConfig } from '../../runtime/config.js';
import { serveApi } from './served-api.js';

const ORIGIN = 'https://app.example.com';
const api = await serveApi({ corsOrigins: [ORIGIN] });

function call(path: string, method: string, headers: Record<string, string>): Promise<Response> {
  return fetch(new URL(path, api.baseUrl), { method, headers });
}

test('a page of a named origin may ask first, send its token, and read the answer and its errors', async () => {
  const wanted = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
  const preflight = await call('/sessions/get', 'OPTIONS', { origin: ORIGIN, ...wanted });
  expect(preflight.status).toBe(204);
  expect(Object.fromEntries(preflight.headers)).toMatchObject({
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': expect.stringContaining('Authorization'),
    vary: 'Origin',
  });
  for (const path of ['/sessions/get', '/nowhere']) {
    const refused = await call(path, 'POST', { origin: ORIGIN });
    expect(refused.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(refused.headers.get('access-control-expose-headers')).toContain('Retry-After');
    expect(refused.headers.get('access-control-allow-credentials')).toBeNull();
  }
  const card = await call('/.well-known/agent-card.json', 'GET', { origin: ORIGIN });
  expect(card.headers.get('vary')).toBe('A2A-Version, Authorization, Origin');
});

test('a page reads every error that comes before its request is served', async () => {
  const limited = await serveApi({ corsOrigins: [ORIGIN], ratePerMinute: 3 });
  const authorization = `Bearer ${await limited.tokenOf(['full'])}`;
  const post = { method: 'POST', headers: { authorization, 'content-type': 'application/json' } };
  const cases: [path: string, status: number, request: RequestInit][] = [
    ['/sessions/get', 400, { ...post, body: '{' }],
    ['/sessions/get', 413, { ...post, body: 'x'.repeat(LIMITS.bodyBytes + 1) }],
    ['/sessions/get', 400, { ...post, headers: { authorization, 'content-type': 'text/plain' }, body: '{}' }],
    ['/sessions/get', 429, { ...post, body: '{}' }],
    ['/sessions/get', 401, { method: 'POST' }],
    ['/sessions/get', 405, { method: 'PUT' }],
    ['/nowhere', 404, post],
    ['/%zz', 400, post],
    ['/%zz', 204, { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } }],
  ];
  for (const [path, status, request] of cases) {
    const headers = { ...(request.headers as Record<string, string>), origin: ORIGIN };
    const answer = await fetch(new URL(path, limited.baseUrl), { ...request, headers });
    expect([path, answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([path, status, ORIGIN]);
    await answer.arrayBuffer();
  }
});

test('any other origin is told nothing, and caches are', async () => {
  for (const origin of ['https://elsewhere.example', 'https://app.example.com.evil.example', 'null']) {
    const asked = { origin, 'access-control-request-method': 'POST' };
    const answer = await call('/sessions/get', 'OPTIONS', asked);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    expect(answer.headers.get('vary')).toBe('Origin');
  }
});

/** What a request of a page on this origin is answered whose headers, or whose body, the HTTP parser does not take. */
async function refusedByParser(origin: string, rest: string): Promise<string> {
  const socket = connect(api.port, '127.0.0.1');
  socket.write(`POST /sessions/get HTTP/1.1\r\nHost: x\r\nOrigin: ${origin}\r\n${rest}`);
  return (await text(socket)).split('\r\n\r\n', 1)[0] ?? '';
}

test.each([
  ['too many headers', 431, `Authorization: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['headers that are none', 400, 'no header\r\n\r\n'],
  ['a body that breaks off', 400, 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n'],
])('a page reads also why the server did not read its request: %s', async (_what, status, rest) => {
  const head = await refusedByParser(ORIGIN, rest);
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(head).toContain(`access-control-allow-origin: ${ORIGIN}\r\n`);
  expect(await refusedByParser('https://elsewhere.example', rest)).not.toContain('access-control-allow-origin');
});

test('origins are scheme, host and port', () => {
  const local = 'http://localhost:3000';
  expect(readConfig({ CORS_ORIGINS: `${ORIGIN}, ${local}` }).CORS_ORIGINS).toEqual([ORIGIN, local]);
  expect(readConfig({}).CORS_ORIGINS).toEqual([]);
  for (const wrong of ['*', 'app.example.com', `${ORIGIN}/`, 'https://*.example.com/x', 'null']) {
    expect(() => readConfig({ CORS_ORIGINS: wrong })).toThrow('CORS_ORIGINS');
  }
});
