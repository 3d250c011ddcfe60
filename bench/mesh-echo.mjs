/** A bare `ws` server that sends a dispatch as text and takes the answer as text, unread: what a frame costs at least. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createPlain } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { WebSocketServer } from 'ws';
import { serve } from './channel.mjs';
import { measured } from './measure.mjs';
import { dispatchText } from './mesh-dispatch.mjs';

/** @param {{ tls?: { cert: string, key: string } }} options */
serve(async ({ tls }) => {
  const server = tls ? createSecure(tls) : createPlain();
  let client;
  const waiting = [];
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
    client = socket;
    socket.on('message', (data) => {
      data.toString();
      waiting.shift()();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const text = dispatchText(randomUUID());
  const exchange = () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      client.send(text);
    });
  const url = `${tls ? 'wss' : 'ws'}://127.0.0.1:${server.address().port}`;
  return { ready: { url }, commands: measured(exchange) };
});
