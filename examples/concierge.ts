/**
 * The fleet concierge: a connected agent. It follows simple rules; with `LLM_URL`, `LLM_API_KEY` and `LLM_MODEL` a model decides which of
 * the same tools to use.
 *
 *     node dist/examples/concierge.js
 */
import { Agent, type AgentTask, FleetClient } from '../sdk/index.js';
import { modelSettings } from './concierge/model.js';
import { ModelHandler } from './concierge/model-handler.js';
import { createRuleHandler } from './concierge/rules.js';
import { createTools } from './concierge/tools.js';
import { lineLog } from './line-log.js';
import { findPlatform } from './platform-access.js';
import { runUntilStopped } from './run-until-stopped.js';

const AGENT_TYPE = 'concierge';
const SKILLS = [
  {
    id: 'answer',
    name: 'Answers, computes and reports what the fleet is doing',
    tags: ['chat', 'arithmetic', 'status'],
  },
  { id: 'operate', name: 'Operates (simulated) services, after asking', tags: ['operations'] },
  { id: 'plan', name: 'Plans trips and places orders by a form', tags: ['form'] },
];
/** Time limit for running work when the agent stops. */
const GRACE_SECONDS = 3;

async function main(stopped: AbortSignal): Promise<void> {
  const access = await findPlatform(process.env, stopped);
  const client = new FleetClient({ ...access, agentType: AGENT_TYPE });
  const tools = createTools(client);
  const settings = modelSettings(process.env);
  const model = settings && new ModelHandler(settings, tools);
  const agent = new Agent({
    ...access,
    type: AGENT_TYPE,
    instanceId: process.env.EXAMPLE_INSTANCE_ID || 'concierge-1',
    name: 'Fleet concierge',
    description: 'Answers, computes, reports and asks before it acts.',
    version: '1.0.0',
    maxConcurrentSessions: 200,
    context: { example: true, model: settings?.model ?? 'none' },
    drainOnSignals: false, // `runUntilStopped` also observes the end of the parent process
    log: lineLog(AGENT_TYPE),
  });
  const handler = model ? (task: AgentTask) => model.handle(task) : createRuleHandler(tools);
  agent.onMessage(handler);
  for (const skill of SKILLS) agent.skill(skill, handler);
  stopped.addEventListener('abort', () => void agent.close(GRACE_SECONDS).catch(() => undefined)); // `closed` below reports the error
  await agent.connect();
  await agent.closed;
  client.close();
}

runUntilStopped(AGENT_TYPE, main);
