/** Many agents in one process. They answer dispatches and pings, and reconnect when their socket is lost. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { serve } from '../harness/child-process.mjs';
import { echoOf, frame } from '../harness/frames.mjs';

/** Sockets that `join` opens concurrently. */
const CONCURRENT_JOINS = 32;

/** The reconnect delays of agents, each ±25 %. */
const BACKOFF_SECONDS = [1, 2, 4, 8, 16, 30];
const backoffMs = (attempt) => (BACKOFF_SECONDS[attempt] ?? 30) * 1_000 * (0.75 + Math.random() / 2);

const now = () => performance.timeOrigin + performance.now();
const text = (value) => [{ kind: 'text', text: value }];

/** Answers `chunks N` with N chunks, `first` with one chunk that holds the time of its sending, and everything else with an echo. */
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

/** Connects one agent; resolves at its `welcome`, with a promise of the loss of its socket. */
async function connect({ url, instanceId, headers, ca }) {
  const address = `${url}/agents/connect?instance_id=${instanceId}`;
  const socket = new WebSocket(address, 'service.v1', { headers, ca, perMessageDeflate: false });
  await once(socket, 'open');
  const lost = once(socket, 'close');
  socket.on('error', () => undefined); // 'close' follows
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
  return { lost };
}

serve(async () => {
  const reconnectedAtMs = [];
  let other;
  async function reconnect(agent) {
    for (let attempt = 0; other; attempt += 1) {
      await delay(backoffMs(attempt));
      const isBack = await connect({ ...agent, url: other }).catch(() => false);
      if (isBack) return reconnectedAtMs.push(now());
    }
  }
  return {
    commands: {
      /** Connects `count` agents named `prefix-0`, …; `headers` and `ca` as for `ws`. */
      join: async ({ url, prefix, count, headers, ca }) => {
        let next = 0;
        const work = async () => {
          while (next < count) {
            const agent = { url, instanceId: `${prefix}-${next++}`, headers, ca };
            const { lost } = await connect(agent);
            void lost.then(() => reconnect(agent));
          }
        };
        await Promise.all(Array.from({ length: Math.min(CONCURRENT_JOINS, count) }, work));
      },
      /** Where agents go that lose their socket; nowhere before. */
      reconnectTo: (url) => {
        other = url;
      },
      reconnected: () => ({ count: reconnectedAtMs.length, lastMs: Math.max(...reconnectedAtMs) }),
    },
  };
});
