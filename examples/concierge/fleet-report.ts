import { AgentsGetResponse } from '../../contracts/agents.js';
import { MESSAGE_STATES, MessagesGetResponse } from '../../contracts/messages.js';
import { SessionsGetResponse } from '../../contracts/sessions.js';
import { GetEventsResponse } from '../../contracts/telemetry.js';
import type { FleetClient } from '../../sdk/index.js';
import type { ConciergeTool } from './tool.js';

const EVENTS_SHOWN = 5;

/** Reports what the fleet is doing, from the platform's own API. */
export function createFleetReport(client: FleetClient): ConciergeTool {
  return {
    name: 'fleet_status',
    description: 'Reports the agents, sessions, messages and latest events of the fleet.',
    parameters: { type: 'object', properties: {} },
    run: () => report(client),
  };
}

async function report(client: FleetClient): Promise<string> {
  const [agents, sessions, messages, events] = await Promise.all([
    agentLines(client),
    sessionLine(client),
    messageLine(client),
    eventLines(client),
  ]);
  return [...agents, sessions, messages, ...events].join('\n');
}

async function agentLines(client: FleetClient): Promise<string[]> {
  const { agents, count } = await client.post('/agents/get', {}, AgentsGetResponse);
  const lines = agents.map((agent) => {
    const room = agent.max_concurrent_sessions === 0 ? '∞' : agent.max_concurrent_sessions;
    return `- ${agent.instance_id} (${agent.deployment_mode}): ${agent.status}, sessions ${agent.current_sessions}/${room}`;
  });
  return [`Agents: ${count}`, ...lines];
}

async function sessionLine(client: FleetClient): Promise<string> {
  const count = async (body: object) =>
    (await client.post('/sessions/get', { page_size: 1, ...body }, SessionsGetResponse)).count;
  const [all, active, paused] = await Promise.all([
    count({}),
    count({ status: 'active' }),
    count({ status: 'paused' }),
  ]);
  return `Sessions: ${all}, of them ${active} active and ${paused} waiting for a human`;
}

async function messageLine(client: FleetClient): Promise<string> {
  const counts = await Promise.all(
    MESSAGE_STATES.map(async (state) => {
      const { count } = await client.post('/messages/get', { state, page_size: 1 }, MessagesGetResponse);
      return { state, count };
    }),
  );
  const present = counts.filter(({ count }) => count > 0).map(({ state, count }) => `${count} ${state}`);
  return `Messages: ${present.join(', ') || 'none'}`;
}

async function eventLines(client: FleetClient): Promise<string[]> {
  const { events } = await client.post('/telemetry/get_events', { page_size: EVENTS_SHOWN }, GetEventsResponse);
  return ['Latest events:', ...events.map((event) => `- ${event.timestamp.slice(11, 19)} ${event.event_type}`)];
}
