import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { ApiShutdown } from '../../api/api-shutdown.js';
import { gate, within } from '../setup/until.js';

const NEVER_MS = 600_000;

async function served() {
  const http = fastify();
  const [asked, answering] = [gate(), gate()];
  http.get('/', async () => {
    asked.open();
    await answering.promise;
    return 'answered';
  });
  const draining = new AbortController();
  const shutdown = new ApiShutdown(http, draining);
  await http.listen({ host: '127.0.0.1', port: 0 });
  const { port } = http.server.address() as AddressInfo;
  return { shutdown, draining, asked, answering, port };
}

test('a connection on which nothing was asked does not hold up the end', async () => {
  const { shutdown, draining, port } = await served();
  const unused = connect(port, '127.0.0.1').resume();
  await once(unused, 'connect');
  const closed = shutdown.close(NEVER_MS);
  await within(Promise.all([closed, once(unused, 'close')]), 20_000, 'the end');
  expect(draining.signal.aborted).toBe(true);
});

test('what was asked before is answered, and its kept connection does not hold up the end either', async () => {
  const { shutdown, asked, answering, port } = await served();
  const asking = connect(port, '127.0.0.1');
  asking.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const answer = once(asking, 'data');
  await asked.promise;
  const closed = shutdown.close(NEVER_MS);
  answering.open();
  expect(String(await answer)).toContain('answered');
  await within(closed, 20_000, 'the end');
});

test('a call that waits is told to end only when its answer does not come in a moment', async () => {
  const { shutdown, draining, asked, answering, port } = await served();
  const asking = connect(port, '127.0.0.1').resume();
  asking.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await asked.promise;
  const ended = once(draining.signal, 'abort');
  const closed = shutdown.close(NEVER_MS, 50);
  expect(draining.signal.aborted).toBe(false);
  await within(ended, 20_000, 'the end of the wait');
  answering.open();
  await within(closed, 20_000, 'the end');
});
