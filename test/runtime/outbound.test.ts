import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { createOutbound, type Outbound, type OutboundOptions } from '../../http/outbound.js';
import { gate } from '../setup/until.js';
import { httpServer, type LoopbackServer, tcpServer, untrustedServer } from './loopback-server.js';

const LIMIT = { timeoutMs: 10_000 };
const never: RequestListener = () => undefined;

function outbound(options: Partial<OutboundOptions> = {}): Outbound {
  const client = createOutbound({ allowCidrs: ['127.0.0.0/8'], ...options });
  onTestFinished(() => client.close());
  return client;
}

/** Writes for as long as the reader takes it. */
const endless: RequestListener = (_request, response) => {
  const fill = (): void => {
    while (response.write(Buffer.alloc(16 * 1024, 'x')));
    response.once('drain', fill);
  };
  fill();
};

test('sends the method, headers and exact body bytes, and returns status, headers and body', async () => {
  const received: unknown[] = [];
  const server = await httpServer(async (request, response) => {
    received.push(request.method, request.url, request.headers['x-signature'], await text(request));
    response.writeHead(201, ['set-cookie', 'a=1', 'set-cookie', 'b=2']).end('höflich');
  });
  const answer = await outbound().request(`${server.url}/hook?a=1`, {
    ...LIMIT,
    method: 'POST',
    headers: { 'X-Signature': 'abc' },
    body: Buffer.from('{"grüße":"\\u00e9 ☃"}'),
  });
  expect(received).toEqual(['POST', '/hook?a=1', 'abc', '{"grüße":"\\u00e9 ☃"}']);
  expect(answer).toMatchObject({ status: 201, headers: { 'set-cookie': 'a=1, b=2' }, truncated: false });
  expect(answer.body.toString()).toBe('höflich');
});

test.each([301, 302, 303, 307, 308])('a %i fails and its target is not requested', async (status) => {
  const target = await httpServer((_request, response) => response.end('secret'));
  const server = await httpServer((_request, response) => response.writeHead(status, { location: target.url }).end());
  const error = { code: 'REDIRECT', requestSent: true, status };
  const client = outbound();
  await expect(client.request(server.url, LIMIT)).rejects.toMatchObject(error);
  await expect(client.stream(server.url, { headersTimeoutMs: 10_000 })).rejects.toMatchObject(error);
  expect(target.connections()).toBe(0);
});

test('a body of exactly the cap is whole, one byte more is truncated', async () => {
  const server = await httpServer((_request, response) => response.end('12345'));
  const client = outbound();
  const whole = await client.request(server.url, { ...LIMIT, maxResponseBytes: 5 });
  expect([whole.body.toString(), whole.truncated]).toEqual(['12345', false]);
  const cut = await client.request(server.url, { ...LIMIT, maxResponseBytes: 4 });
  expect([cut.body.toString(), cut.truncated]).toEqual(['1234', true]);
});

test('an endless body is cut at 50 KB and its connection dropped', async () => {
  const dropped = gate();
  const server = await httpServer((request, response) => {
    request.socket.on('close', () => dropped.open());
    endless(request, response);
  });
  const answer = await outbound().request(server.url, LIMIT);
  expect(answer).toMatchObject({ status: 200, truncated: true });
  expect(answer.body.length).toBe(50 * 1024);
  await dropped.promise;
});

test('an endless trickle below the cap ends with the time limit', async () => {
  const server = await httpServer((_request, response) => {
    const trickle = setInterval(() => response.write('.'), 10);
    response.on('close', () => clearInterval(trickle));
  });
  const error = { code: 'TIMEOUT', requestSent: true, status: 200 };
  await expect(outbound().request(server.url, { timeoutMs: 1_500 })).rejects.toMatchObject(error);
});

const unresolved = () => new Promise<never>(() => undefined);
const notFound = () => Promise.reject(new Error('ENOTFOUND'));

test.each<[string, string, Partial<OutboundOptions>, (port: number) => string]>([
  ['a refused port', 'CONNECT_FAILED', {}, () => 'http://127.0.0.1:1/'],
  ['a name that does not resolve', 'CONNECT_FAILED', { lookup: notFound }, () => 'http://name.example/'],
  ['a guard refusal', 'FORBIDDEN_ADDRESS', { allowCidrs: [] }, (port) => `http://localhost:${port}/`],
  ['a resolver that does not answer', 'TIMEOUT', { lookup: unresolved }, () => 'http://name.example/'],
  ['a TLS handshake that does not end', 'TIMEOUT', {}, (port) => `https://127.0.0.1:${port}/`],
])('%s is %s and the request was not sent', async (_name, code, options, url) => {
  const silent = await tcpServer(() => undefined);
  const sent = outbound(options).request(url(silent.port), { timeoutMs: 1_500 });
  await expect(sent).rejects.toMatchObject({ name: 'OutboundError', code, requestSent: false });
});

/** A server that reads a request and then does this with its socket. */
const after = (act: (socket: Socket) => void) => () => tcpServer((socket) => socket.once('data', () => act(socket)));
const saying = (text: string) => after((socket) => socket.end(text));
const OK = 'HTTP/1.1 200 OK\r\n';
test.each<[string, string, () => Promise<LoopbackServer>]>([
  ['a reset', 'BROKEN', after((socket) => socket.resetAndDestroy())],
  ['a close without an answer', 'BROKEN', after((socket) => socket.end())],
  ['an answer that is not HTTP', 'BROKEN', saying('SSH-2.0\r\n')],
  ['headers that end midway', 'BROKEN', saying(`${OK}A`)],
  ['a body shorter than announced', 'BROKEN', saying(`${OK}content-length: 9\r\n\r\nabc`)],
  ['no headers in time', 'TIMEOUT', () => httpServer(never)],
])('%s is %s and the request was sent', async (_name, code, start) => {
  const { url } = await start();
  const client = outbound();
  const post = { method: 'POST', body: '{}' };
  await expect(client.request(url, { ...post, timeoutMs: 1_500 })).rejects.toMatchObject({ code, requestSent: true });
});

test.each(['http', 'https'])(
  'the connect limit ends an %s connection attempt before the time limit does',
  async (scheme) => {
    const silent = await tcpServer(() => undefined);
    const client = outbound({ connectTimeoutMs: 50, lookup: scheme === 'http' ? unresolved : undefined });
    const host = scheme === 'http' ? 'name.example' : '127.0.0.1';
    const sent = client.request(`${scheme}://${host}:${silent.port}/`, { timeoutMs: 600_000 });
    await expect(sent).rejects.toMatchObject({ code: 'TIMEOUT', requestSent: false });
  },
);

test('a peer that TLS does not trust gets no request', async () => {
  const server = await untrustedServer(never);
  const sent = outbound().request(`https://127.0.0.1:${server.port}/`, LIMIT);
  await expect(sent).rejects.toMatchObject({ code: 'CONNECT_FAILED', requestSent: false });
  expect(server.requests).toEqual([]);
});

test.each([
  [{ method: 'NO SUCH' }],
  [{ method: 'CONNECT' }],
  [{ headers: { 'x-evil': 'a\r\nhost: b' } }],
  [{ method: 'POST', headers: { 'content-length': '99' }, body: 'short' }],
])('%j is refused before anything is sent', async (parts) => {
  const server = await httpServer(never);
  await expect(outbound().request(server.url, { ...LIMIT, ...parts })).rejects.toMatchObject({
    code: 'BAD_URL',
    requestSent: false,
  });
  expect(server.requests).toEqual([]);
});

test('a request that timed out before its connection opened is not sent afterwards', async () => {
  const server = await httpServer((_request, response) => response.end());
  const resolved = gate();
  const lookup = () => resolved.promise.then(() => [{ address: '127.0.0.1', family: 4 }]);
  const client = outbound({ lookup });
  const base = `http://name.example:${server.port}`;
  await expect(client.request(`${base}/late`, { timeoutMs: 20 })).rejects.toMatchObject({
    code: 'TIMEOUT',
    requestSent: false,
  });
  resolved.open();
  await client.request(`${base}/next`, LIMIT);
  await expect.poll(server.connections).toBe(2);
  await client.request(`${base}/last`, LIMIT);
  expect(server.requests).toEqual(['GET /next', 'GET /last']);
});

test.each(['GET', 'POST'])('a %s on a reused connection that breaks is not sent a second time', async (method) => {
  const server = await httpServer((request, response) => {
    if (request.url === '/first') response.end();
    else request.socket.destroy();
  });
  const client = outbound();
  // Back to back the first connection may not be free again yet; of two, one is.
  await client.request(`${server.url}/first`, LIMIT);
  await client.request(`${server.url}/first`, LIMIT);
  const opened = server.connections();
  const second = client.request(`${server.url}/second`, { ...LIMIT, method });
  await expect(second).rejects.toMatchObject({ code: 'BROKEN', requestSent: true });
  expect(server.requests).toEqual(['GET /first', 'GET /first', `${method} /second`]);
  expect(server.connections()).toBe(opened);
});

test('the signal aborts a request before and after it is sent', async () => {
  const arrived = gate();
  const server = await httpServer(() => arrived.open());
  const client = outbound();
  const before = client.request(server.url, { ...LIMIT, signal: AbortSignal.abort() });
  await expect(before).rejects.toMatchObject({ code: 'ABORTED', requestSent: false });
  expect(server.connections()).toBe(0);
  const controller = new AbortController();
  const after = client.request(server.url, { ...LIMIT, signal: controller.signal });
  await arrived.promise;
  controller.abort();
  await expect(after).rejects.toMatchObject({ code: 'ABORTED', requestSent: true });
});

test('close aborts what is in flight and what comes later', async () => {
  const arrived = gate();
  const server = await httpServer(() => arrived.open());
  const client = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  const inFlight = expect(client.request(server.url, LIMIT)).rejects.toMatchObject({
    code: 'ABORTED',
    requestSent: true,
  });
  await arrived.promise;
  await client.close();
  await inFlight;
  await expect(client.request(server.url, LIMIT)).rejects.toMatchObject({ code: 'ABORTED', requestSent: false });
});
