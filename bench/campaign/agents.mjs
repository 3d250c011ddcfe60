/**
 * Agents of a campaign or a soak in one process, which may be killed. They write what they do into a journal, a line for each fact, before they
 * go on: a kill loses nothing of it. `python_agents.py` is the same on the other SDK.
 */
import { openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, SILENT_LOG, z } from '../../dist/sdk/index.js';
import { serve } from '../harness/child-process.mjs';
import { chunksOf, parseText, USAGE } from './messages.mjs';

const CHUNK_MS = 100;
/** Limit for what an agent still works on when it leaves; longer than any work takes. */
const LEAVE_GRACE_S = 20;

let journal;
const agents = new Map();

function note(fact) {
  writeSync(journal, `${JSON.stringify({ ...fact, atMs: Date.now() })}\n`);
}

const completed = (text) => ({ state: 'completed', parts: [{ kind: 'text', text }], usage: USAGE });
const asked = (title) => ({
  state: 'input-required',
  question: { kind: 'confirmation', title, prompt: 'May it go on?' },
  usage: USAGE,
});

/** A tool that fails says why; whether it may fail is judged later. */
async function useTool(task, kind, name) {
  try {
    await task.callTool(kind, { message_id: task.messageId }, { target: { agentType: 'tools' } });
    return completed(`${kind} done for ${name}`);
  } catch (error) {
    if (task.signal.aborted) throw error;
    note({ fact: 'tool failed', message: task.messageId, code: error.code ?? error.message });
    return { state: 'failed', code: 'TOOL_FAILED', message: `${error.code}: ${error.message}` };
  }
}

async function* answer(task) {
  const { kind, amount, name } = parseText(task.text);
  switch (kind) {
    case 'stream':
      for (const chunk of chunksOf(amount)) {
        yield chunk;
        await delay(CHUNK_MS);
      }
      yield name;
      return { state: 'completed', usage: USAGE };
    case 'slow':
    case 'cancel':
      await delay(amount, undefined, { signal: task.signal });
      return completed(name);
    case 'ask':
      return task.resolution ? completed(`${task.resolution.resolution} ${name}`) : asked(name);
    case 'wait':
      return asked(name);
    case 'tool':
    case 'pay':
      return useTool(task, kind, name);
    default:
      return completed(name);
  }
}

/** The same for each dispatch of a message: an approval counts for these arguments. */
const toolArguments = z.object({ message_id: z.string() });

/** @param {{ access: object, node: number, tenant: string, type: string, instanceId: string }} options */
function newAgent({ access, node, tenant, type, instanceId }) {
  const log = SILENT_LOG; // agents are cut off all the time
  const agent = new Agent({ ...access, type, instanceId, maxConcurrentSessions: 0, drainOnSignals: false, log });
  if (type === 'tools') {
    for (const tool of ['tool', 'pay'])
      agent.tool(tool, toolArguments, ({ message_id }) => {
        note({ fact: 'tool', tool, tenant, message: message_id, instance: instanceId });
        return 'done';
      });
  } else {
    agent.onMessage((task) => {
      const { messageId: message, dispatchId: dispatch } = task;
      note({ fact: 'started', tenant, message, dispatch, instance: instanceId });
      return answer(task);
    });
  }
  agent.on('connected', ({ meshId, resumed }) => {
    note({ fact: 'connected', node, meshId, instance: instanceId, resumed });
  });
  return agent;
}

async function join(options) {
  const agent = newAgent(options);
  agents.set(`${options.tenant}/${options.instanceId}`, { agent, options });
  await (options.type === 'hosted' ? agent.serve({ host: '127.0.0.1', port: 0 }) : agent.connect());
}

/** An agent leaves as it should, and comes back as a new one of the same name. */
async function leaveAndReturn({ key, awayMs }) {
  const { agent, options } = agents.get(key);
  await agent.close(LEAVE_GRACE_S);
  await delay(awayMs);
  await join(options);
}

serve(async ({ journalFile }) => {
  journal = openSync(journalFile, 'a');
  return {
    commands: {
      join: (all) => Promise.all(all.map(join)).then(() => agents.size),
      leaveAndReturn,
    },
  };
});
