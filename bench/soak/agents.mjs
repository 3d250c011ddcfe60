/** Many connected SDK agents in one process, with a journal of the messages that they started. */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, SILENT_LOG } from '../../dist/sdk/index.js';
import { serve } from '../harness/child-process.mjs';

const CHUNK_MS = 100;

/** Messages that were started and connections that were made since the benchmark last read the journal. */
const journal = { started: [], connected: [] };
const agents = [];

/** The text of a message is `quick 0 NAME`, `slow MILLISECONDS NAME` or `stream CHUNKS NAME`; NAME ends the answer. */
async function* answer(task) {
  journal.started.push(task.messageId);
  const [kind, amount, name] = task.text.split(' ');
  if (kind === 'slow') await delay(Number(amount));
  for (let chunk = 0; kind === 'stream' && chunk < Number(amount); chunk += 1) {
    yield `${chunk} `;
    await delay(CHUNK_MS);
  }
  yield name;
}

/** @param {{ nodes: object[], count: number, types: number }} options `nodes`: access options for each node of the platform */
async function join({ nodes, count, types }) {
  for (let index = 0; index < count; index += 1) {
    const node = index % nodes.length;
    const agent = new Agent({
      ...nodes[node],
      type: `soak-${index % types}`,
      instanceId: `soak-${index}`,
      maxConcurrentSessions: 0,
      drainOnSignals: false,
      log: SILENT_LOG, // the soak cuts connections all the time
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
    journal: () => ({ started: journal.started.splice(0), connected: journal.connected.splice(0) }),
    leave: async () => {
      await Promise.all(agents.map((agent) => agent.close()));
    },
  },
}));
