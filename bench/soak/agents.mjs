/** Many connected agents on the TypeScript SDK in one process, with a journal of what they started. `python_agents.py` is the same on the other SDK. */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, SILENT_LOG, ToolError, z } from '../../dist/sdk/index.js';
import { serve } from '../harness/child-process.mjs';

const CHUNK_MS = 100;
/** Pause before a tool call that was cut off is repeated. */
const REPEAT_MS = 200;
/** Limit for what an agent still works on when it leaves; longer than any work takes. */
const LEAVE_GRACE_S = 30;

/** Messages and tool calls that were started and connections that were made since the benchmark last read the journal. */
const journal = { started: [], connected: [] };
/** The agents that are not away, by their instance ids. */
const agents = new Map();
let access;

/** Calls the tool of another agent until an answer comes: a call ends with the connection of either agent. */
async function useTool(task, agentType) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await task.callTool('echo', { call: `${task.messageId}/${attempt}` }, { target: { agentType } });
    } catch (error) {
      if (!(error instanceof ToolError) || !(error.retryable || error.code === 'AGENT_DISCONNECTED')) throw error;
      await delay(REPEAT_MS, undefined, { signal: task.signal });
    }
  }
}

/** The text of a message is `KIND ARGUMENT NAME`, see `load.mjs`; NAME ends the answer. */
async function* answer(task) {
  const [kind, argument, name] = task.text.split(' ');
  if (kind === 'slow') await delay(Number(argument));
  for (let chunk = 0; kind === 'stream' && chunk < Number(argument); chunk += 1) {
    yield `${chunk} `;
    await delay(CHUNK_MS);
  }
  if (kind === 'ask') {
    const { resolution } = await task.ask({ kind: 'confirmation', title: 'Sure?', prompt: 'May it go on?' });
    yield `${resolution} `;
  }
  if (kind === 'tool') yield `${await useTool(task, argument)} `;
  yield name;
}

function newAgent({ node, type, instanceId }) {
  const agent = new Agent({
    ...access[node],
    type,
    instanceId,
    maxConcurrentSessions: 0,
    drainOnSignals: false,
    log: SILENT_LOG, // the soak cuts connections all the time
  });
  agent.onMessage((task) => {
    journal.started.push(task.messageId);
    return answer(task);
  });
  agent.tool('echo', z.object({ call: z.string() }), ({ call }) => {
    journal.started.push(call);
    return 'echoed';
  });
  agent.on('connected', ({ meshId, resumed }) => journal.connected.push({ node, meshId, resumed }));
  return agent;
}

async function join(instance) {
  const agent = newAgent(instance);
  await agent.connect();
  agents.set(instance.instanceId, { agent, instance });
}

/** An agent finishes its work, leaves, and comes back as a new one of the same name. Any agent that is not away may be chosen. @returns its id */
async function leaveAndReturn({ chosen, awayMs }) {
  const [id, { agent, instance }] = [...agents][Math.floor(chosen * agents.size)];
  agents.delete(id);
  await agent.close(LEAVE_GRACE_S);
  await delay(awayMs);
  await join(instance);
  return id;
}

serve(async (options) => {
  access = options.access;
  return {
    commands: {
      join: (instances) => Promise.all(instances.map(join)).then(() => agents.size),
      journal: () => ({ started: journal.started.splice(0), connected: journal.connected.splice(0) }),
      leaveAndReturn,
    },
  };
});
