/** A bare `ws` server that sends a dispatch as text and reads the answer as text without parsing it: the lower bound for a frame. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createPlain } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { WebSocketServer } from 'ws';
import { serve } from '../harness/child-process.mjs';
import { measured } from '../harness/measure.mjs';
import { dispatchText } from './dispatch.mjs';

/** @param {{ tls?: { cert: string, key: string } }} options */
serve(async ({ tls }) => {
  const server = tls ? createSecure(tls) : createPlain();
  let client;
  const pending = [];
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
    client = socket;
    socket.on('message', (data) => {
      data.toString();
      pending.shift()();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const text = dispatchText(randomUUID());
  const exchange = () =>
    new Promise((resolve) => {
      pending.push(resolve);
      client.send(text);
    });
  const url = `${tls ? 'wss' : 'ws'}://127.0.0.1:${server.address().port}`;
  return { ready: { url }, commands: measured(exchange) };
});
