import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createOutbound, type Outbound } from '../../http/outbound.js';
import { gate } from '../setup/until.js';
import { httpServer, tcpServer } from './loopback-server.js';

const LIMIT = { headersTimeoutMs: 10_000 };

function outbound(): Outbound {
  const client = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  onTestFinished(() => client.close());
  return client;
}

/** A server whose answers the test writes itself; `closed` when the client dropped the connection. */
async function sseServer() {
  const responses: ServerResponse[] = [];
  const closed = gate();
  const server = await httpServer((_request, response) => {
    response.on('close', closed.open);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    responses.push(response);
  });
  const write = (chunk: string): void => void responses.at(-1)?.write(chunk);
  return { ...server, write, end: () => responses.at(-1)?.end(), closed: closed.promise };
}

async function collect(body: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of body) text += chunk.toString();
  return text;
}

test('an event stream arrives chunk by chunk, each before the next is written', async () => {
  const server = await sseServer();
  const stream = await outbound().stream(server.url, { ...LIMIT, headers: { accept: 'text/event-stream' } });
  expect(stream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } });
  const reader = stream.body[Symbol.asyncIterator]();
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: ☃\n\n']) {
    server.write(event);
    expect((await reader.next()).value?.toString()).toBe(event);
  }
  server.end();
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});

test('the headers limit does not end a body', async () => {
  const server = await sseServer();
  const silent = await httpServer(() => undefined);
  const client = outbound();
  const stream = await client.stream(server.url, { headersTimeoutMs: 1_500 });
  // Started later with the same limit: when this one is over, the first one's limit has passed.
  await expect(client.stream(silent.url, { headersTimeoutMs: 1_500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
  server.write('late');
  server.end();
  expect(await collect(stream.body)).toBe('late');
});

test('no headers in time is TIMEOUT', async () => {
  const { url } = await httpServer(() => undefined);
  const opened = outbound().stream(url, { headersTimeoutMs: 1_500 });
  await expect(opened).rejects.toMatchObject({ code: 'TIMEOUT', requestSent: true });
});

const ELEVEN = '12345678901';
type Options = Parameters<Outbound['stream']>[1];
interface Acts {
  write: (chunk: string) => void;
  cancel: () => void;
  abort: () => void;
}
test.each<[string, Partial<Options>, (acts: Acts) => void, object]>([
  ['falls silent beyond its limit', { idleTimeoutMs: 100 }, () => undefined, { code: 'TIMEOUT', status: 200 }],
  ['is more than the cap', { maxResponseBytes: 10 }, ({ write }) => write(ELEVEN), { code: 'TOO_LARGE', status: 200 }],
  ['is canceled', {}, ({ cancel }) => cancel(), { code: 'ABORTED' }],
  ['is ended by the signal', {}, ({ abort }) => abort(), { code: 'ABORTED' }],
])('the reader of a body that %s is told, and the connection dropped', async (_what, options, act, error) => {
  const server = await sseServer();
  const controller = new AbortController();
  const stream = await outbound().stream(server.url, { ...LIMIT, signal: controller.signal, ...options });
  const read = expect(collect(stream.body)).rejects.toMatchObject({ requestSent: true, ...error });
  act({ write: server.write, cancel: () => stream.cancel(), abort: () => controller.abort() });
  await read;
  await server.closed;
});

test('cancel drops the connection of a body that nobody reads', async () => {
  const server = await sseServer();
  const stream = await outbound().stream(server.url, LIMIT);
  stream.cancel();
  stream.cancel();
  await server.closed;
  await expect(collect(stream.body)).rejects.toMatchObject({ code: 'ABORTED' });
});

test('leaving the loop drops the connection', async () => {
  const server = await sseServer();
  const stream = await outbound().stream(server.url, LIMIT);
  server.write('one');
  for await (const chunk of stream.body) {
    expect(chunk.toString()).toBe('one');
    break;
  }
  await server.closed;
});

test('a connection that breaks within the body is BROKEN, not an end', async () => {
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n';
  const { url } = await tcpServer((socket) => socket.once('data', () => socket.end(head)));
  const stream = await outbound().stream(url, LIMIT);
  await expect(collect(stream.body)).rejects.toMatchObject({ code: 'BROKEN', requestSent: true, status: 200 });
});

test('a body of many megabytes arrives whole, at the pace of its reader', async () => {
  const body = Buffer.alloc(8 * 1024 * 1024, 'abcdefg');
  const server = await httpServer((_request, response) => response.end(body));
  const stream = await outbound().stream(server.url, LIMIT);
  const chunks: Buffer[] = [];
  for await (const chunk of stream.body) {
    chunks.push(chunk);
    await new Promise(setImmediate); // the connection goes on meanwhile
  }
  expect(Buffer.concat(chunks).equals(body)).toBe(true);
});
