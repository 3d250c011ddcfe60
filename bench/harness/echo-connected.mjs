/**
 * The connected echo agent, as cheap as possible: one `dispatch_result` for each dispatch. It opens sockets to platforms (`join`) and
 * accepts sockets from the floors, so its cost is the same in every row.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import { WebSocket, WebSocketServer } from 'ws';
import { serve } from './child-process.mjs';
import { echoOf, frame } from './frames.mjs';

const ANSWERS = {
  dispatch: ({ id, payload }) => {
    const result = echoOf(payload.params.message.parts);
    return frame('dispatch_result', { result, status: { state: 'completed' } }, { inReplyTo: id });
  },
  ping: ({ id, payload }) => frame('pong', payload, { inReplyTo: id }),
};

function answerOn(socket) {
  socket.on('message', (data) => {
    const received = JSON.parse(data);
    const answer = ANSWERS[received.type];
    if (answer) socket.send(answer(received));
    else if (received.type === 'error') process.stderr.write(`echo agent: ${JSON.stringify(received.payload)}\n`);
  });
}

/** Connects to a platform. Resolves at its `welcome`. */
async function join({ url, token, ca, hello }) {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(url, 'service.v1', { headers, ca, perMessageDeflate: false });
  await once(socket, 'open');
  const welcome = once(socket, 'message');
  socket.send(frame('hello', hello));
  const [data] = await welcome;
  const { type, payload } = JSON.parse(data);
  if (type !== 'welcome') throw new Error(`expected welcome, received ${type}: ${JSON.stringify(payload)}`);
  answerOn(socket);
}

/** @param {{ cert: string, key: string }} tls */
serve(async (tls) => {
  const server = createServer(tls);
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', answerOn);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { ready: { url: `wss://127.0.0.1:${server.address().port}` }, commands: { join } };
});
