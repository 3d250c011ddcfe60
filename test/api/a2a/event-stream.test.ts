import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventStream, responseSignal } from '../../../api/send/event-stream.js';
import { until } from '../../setup/until.js';

const server = createServer();
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** A response that waits to be written, and the socket of its reader, who reads nothing. */
async function asked(): Promise<{ raw: ServerResponse; reader: Socket }> {
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  reader.on('error', () => undefined); // it is cut off below
  reader.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [, raw] = (await once(server, 'request')) as [unknown, ServerResponse];
  return { raw, reader };
}

test('a stream begun after its reader has left is over at once', async () => {
  const { raw, reader } = await asked();
  reader.destroy();
  await once(raw, 'close');
  const signal = responseSignal(raw, new AbortController().signal);
  expect(signal.aborted).toBe(true);
  const stream = new EventStream(raw, 'late');
  await expect(stream.send({}, 'e1', signal)).rejects.toThrow(/abort/i);
  stream.end();
});

test('a stream lives until its reader leaves, or the process drains', async () => {
  const [left, drained] = [await asked(), await asked()];
  const draining = new AbortController();
  const never = new AbortController().signal;
  const signals = [responseSignal(left.raw, never), responseSignal(drained.raw, draining.signal)];
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  left.reader.destroy();
  await once(left.raw, 'close');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  draining.abort();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test('a reader who takes nothing for too long is cut off', async () => {
  const { raw } = await asked();
  const signal = responseSignal(raw, new AbortController().signal);
  const stream = new EventStream(raw, 'blocked', { stalledMsMax: 50 });
  const sending = (async () => {
    for (;;) await stream.send('x'.repeat(100_000), 'e1', signal);
  })();
  await expect(sending).rejects.toThrow(/abort/i);
  expect(raw.destroyed).toBe(true);
});

test('a stream without events sends comments, which readers pass over, until it ends', async () => {
  const { raw, reader } = await asked();
  const signal = responseSignal(raw, new AbortController().signal);
  let text = '';
  reader.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  reader.resume();
  const stream = new EventStream(raw, 'quiet', { heartbeatMs: 10 });
  const comments = () => text.split(': keep-alive\n\n').length - 1;
  await until(() => comments() >= 3, { what: 'three comments' });
  await stream.send({ of: 'an event' }, 'e1', signal);
  const seen = comments();
  await until(() => comments() > seen, { what: 'a comment after the event' });
  expect(text).toContain('id: e1\ndata: {"of":"an event"}\n\n');
  stream.end();
  await once(raw, 'close');
});
