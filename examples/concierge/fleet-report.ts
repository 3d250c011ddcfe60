import { z } from 'zod';
import { MESSAGE_STATES } from '../../contracts/message-states.js';
import type { AgentTask, FleetClient, SessionsGetRequest } from '../../sdk/index.js';
import type { ConciergeTool } from './tool.js';

const Fleet = z.object({
  count: z.int(),
  agents: z.array(z.object({ instance_id: z.string(), agent_type: z.string(), deployment_mode: z.string() })),
});

/**
 * Reports the available agents, from the platform's tool, and the concierge's sessions and messages, from the API: an agent sees those that
 * it serves.
 */
export function createFleetReport(client: FleetClient): ConciergeTool {
  return {
    name: 'fleet_status',
    description: 'Reports the available agents of the fleet, and the sessions and messages of the concierge.',
    parameters: { type: 'object', properties: {} },
    run: (_args, task) => report(client, task),
  };
}

async function report(client: FleetClient, task: AgentTask): Promise<string> {
  const [agents, sessions, messages] = await Promise.all([agentLines(task), sessionLine(client), messageLine(client)]);
  return [...agents, sessions, messages].join('\n');
}

async function agentLines({ callTool }: AgentTask): Promise<string[]> {
  const { agents, count } = Fleet.parse(await callTool('fleet.get_agents'));
  const lines = agents.map((agent) => `- ${agent.instance_id}: ${agent.agent_type}, ${agent.deployment_mode}`);
  return [`Available agents: ${count}`, ...lines];
}

async function sessionLine(client: FleetClient): Promise<string> {
  const count = async (filter: SessionsGetRequest) => (await client.sessions.get({ pageSize: 1, ...filter })).count;
  const [all, active, paused] = await Promise.all([
    count({}),
    count({ status: 'active' }),
    count({ status: 'paused' }),
  ]);
  return `My sessions: ${all}, of them ${active} active and ${paused} waiting for a human`;
}

async function messageLine(client: FleetClient): Promise<string> {
  const counts = await Promise.all(
    MESSAGE_STATES.map(async (state) => {
      const { count } = await client.messages.get({ state, pageSize: 1 });
      return { state, count };
    }),
  );
  const present = counts.filter(({ count }) => count > 0).map(({ state, count }) => `${count} ${state}`);
  return `My messages: ${present.join(', ') || 'none'}`;
}
