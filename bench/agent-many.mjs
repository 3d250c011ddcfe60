/** Many connected agents of the SDK in one process, and what each of them was given. */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, SILENT_LOG } from '../dist/sdk/index.js';
import { serve } from './channel.mjs';

const PIECE_MS = 100;

/** What was begun since the driver last asked, and where each agent is connected. */
const journal = { begun: [], connected: [] };
const agents = [];

/** The message says what to do: `quick`, `slow` for so many milliseconds, or `stream` in so many pieces; its name ends the answer. */
async function* answer(task) {
  journal.begun.push(task.messageId);
  const [kind, amount, name] = task.text.split(' ');
  if (kind === 'slow') await delay(Number(amount));
  for (let piece = 0; kind === 'stream' && piece < Number(amount); piece += 1) {
    yield `${piece} `;
    await delay(PIECE_MS);
  }
  yield name;
}

/** @param {{ places: object[], count: number, types: number }} options `places`: how to reach the platform, by node */
async function join({ places, count, types }) {
  for (let index = 0; index < count; index += 1) {
    const node = index % places.length;
    const agent = new Agent({
      ...places[node],
      type: `soak-${index % types}`,
      instanceId: `soak-${index}`,
      maxConcurrentSessions: 0,
      drainOnSignals: false,
      log: SILENT_LOG, // connections are lost all the time here
    });
    agent.onMessage(answer);
    agent.on('connected', ({ meshId, resumed }) => journal.connected.push({ node, meshId, resumed }));
    agents.push(agent);
  }
  await Promise.all(agents.map((agent) => agent.connect()));
  return agents.length;
}

serve(async () => ({
  commands: {
    join,
    journal: () => ({ begun: journal.begun.splice(0), connected: journal.connected.splice(0) }),
    leave: async () => {
      await Promise.all(agents.map((agent) => agent.close()));
    },
  },
}));
