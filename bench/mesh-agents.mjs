/** Agents by the thousand, in one process: they answer dispatches and pings, and come back when their socket is lost. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { serve } from './channel.mjs';
import { echoOf, frame } from './frames.mjs';

/** Sockets that are opened at once when nothing presses. */
const AT_ONCE = 32;

/** The pauses that the specification gives (section 6), in seconds, each ±25 %. */
const BACKOFF = [1, 2, 4, 8, 16, 30];
const backoffMs = (attempt) => (BACKOFF[attempt] ?? 30) * 1_000 * (0.75 + Math.random() / 2);

const now = () => performance.timeOrigin + performance.now();
const text = (value) => [{ kind: 'text', text: value }];

/** `chunks N` is answered with so many chunks, `first` with one chunk that says when it was sent; everything else comes back as it is. */
async function answer(socket, { id, payload }) {
  const { parts } = payload.params.message;
  const [, count] = /^chunks (\d+)$/.exec(parts[0].text) ?? [];
  const reply = (type, body) => socket.send(frame(type, body, { inReplyTo: id }));
  if (count !== undefined) {
    for (let seq = 0; seq < count; seq += 1) {
      while (socket.bufferedAmount > 64 * 1_024) await delay(1);
      reply('dispatch_chunk', { seq, parts: text(`${seq} `) });
    }
    return reply('dispatch_result', { result: '', chunk_count: Number(count) });
  }
  if (parts[0].text === 'first') {
    reply('dispatch_chunk', { seq: 0, parts: text(String(now())) });
    await delay(15);
    return reply('dispatch_result', { result: '', chunk_count: 1 });
  }
  return reply('dispatch_result', { result: echoOf(parts), status: { state: 'completed' } });
}

/** One that has said welcome. `lost` resolves with its socket. */
async function connect({ url, instanceId, headers, ca }) {
  const address = `${url}/agents/connect?instance_id=${instanceId}`;
  const socket = new WebSocket(address, 'service.v1', { headers, ca, perMessageDeflate: false });
  await once(socket, 'open');
  const lost = once(socket, 'close');
  socket.on('error', () => undefined); // the closing tells
  socket.send(frame('hello', { instance_id: instanceId, max_concurrent_sessions: 0 }));
  await new Promise((resolve, reject) => {
    lost.then(() => reject(new Error('lost before welcome')));
    socket.on('message', (data) => {
      const received = JSON.parse(data);
      if (received.type === 'welcome') resolve();
      else if (received.type === 'dispatch') void answer(socket, received);
      else if (received.type === 'ping') socket.send(frame('pong', received.payload, { inReplyTo: received.id }));
      else if (received.type === 'error') process.stderr.write(`agent: ${JSON.stringify(received.payload)}\n`);
    });
  });
  return { socket, lost };
}

/** Comes back to another address as an agent does, with the pauses of the SDK. */
async function comeBack(agent, state) {
  for (let attempt = 0; ; attempt += 1) {
    if (state.backOff) await delay(backoffMs(attempt));
    try {
      state.attempts += 1;
      await connect({ ...agent, url: state.url });
      state.back.push(now());
      return;
    } catch {
      state.refused += 1;
      if (!state.backOff) await delay(backoffMs(attempt));
    }
  }
}

serve(async () => {
  const state = { url: '', backOff: false, attempts: 0, refused: 0, back: [] };
  return {
    commands: {
      /** Connects `count` agents named `prefix-0`, …; `headers` and `ca` as for `ws`. */
      join: async ({ url, prefix, count, headers, ca, returns = false }) => {
        let next = 0;
        const work = async () => {
          while (next < count) {
            const agent = { url, instanceId: `${prefix}-${next++}`, headers, ca };
            const { lost } = await connect(agent);
            if (returns) lost.then(() => comeBack(agent, state));
          }
        };
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, work));
      },
      /** Answers the dispatches of a bare server. */
      answer: async ({ url, ca }) => {
        const socket = new WebSocket(url, { ca, perMessageDeflate: false });
        await once(socket, 'open');
        socket.on('message', (data) => void answer(socket, JSON.parse(data)));
      },
      returnTo: (options) => void Object.assign(state, { attempts: 0, refused: 0, back: [] }, options),
      returned: () => ({
        count: state.back.length,
        last: Math.max(...state.back),
        attempts: state.attempts,
        refused: state.refused,
      }),
    },
  };
});
