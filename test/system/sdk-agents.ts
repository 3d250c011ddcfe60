import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { type Agent, type AgentTask, SILENT_LOG, z } from '../../sdk/index.js';
import { sdkOn } from '../sdk/platform/fixture.js';
import type { Home } from '../setup/platform/fleet.js';

/** A policy that wants approval for the tool `pay`. */
export async function wantApproval({ client }: Home): Promise<void> {
  const policy = { scope: 'tool', name: 'payments', decision: 'require_approval', match: { tools: ['pay'] } };
  await client.ok('/policies/create_policy', policy, PolicyResponse);
}

/** An agent of the SDK; it is closed with the test. */
const agentOf = (home: Home, type: string): Agent => sdkOn(() => home.devJson()).agentOf(type, { log: SILENT_LOG });

/** The agent that pays, with what it has paid and how often it has connected. */
export async function teller(home: Home): Promise<{ paid: number[]; connections: () => number }> {
  const paid: number[] = [];
  let connections = 0;
  const agent = agentOf(home, 'teller').tool('pay', z.object({ amount: z.number() }), ({ amount }) => {
    paid.push(amount);
    return `${amount} paid`;
  });
  agent.on('connected', () => {
    connections += 1;
  });
  await agent.connect();
  return { paid, connections: () => connections };
}

/** An agent that pays 5 for each message, with the tasks that it was given. */
export function buyer(home: Home, type = 'buyer'): { agent: Agent; tasks: AgentTask[] } {
  const tasks: AgentTask[] = [];
  const agent = agentOf(home, type).onMessage(async (task) => {
    tasks.push(task);
    return String(await task.callTool('pay', { amount: 5 }));
  });
  return { agent, tasks };
}
