import type { AgentTypeActivity, ListedAgent } from '../../contracts/api/agents.js';
import { numberText } from '../parts/texts.js';

const SHOWS = ['trouble', 'waiting', 'offline'] as const;

/** What the address of the fleet says: filters, and the type and the instance that are shown beside the list. */
export interface FleetSearch {
  q?: string;
  show?: (typeof SHOWS)[number];
  type?: string;
  instance?: string;
}

const TEXT_MAX = 256;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseFleetSearch(search: Record<string, unknown>): FleetSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? { [name]: value } : {};
  };
  const show = SHOWS.find((value) => value === search.show);
  return { ...text('q'), ...(show && { show }), ...text('type'), ...text('instance') };
}

/** How well something fares: the worst first. `tone`: of its badge. */
export interface Health {
  tone: 'bad' | 'wait' | 'good' | '';
  text: string;
  since?: string;
}

const counted = (count: number, one: string, many: string) => `${numberText(count)} ${count === 1 ? one : many}`;

/** What is worth knowing of a type, in a few words. */
export function healthOf(type: AgentTypeActivity): Health {
  const { instances, online, draining, unhealthy, queue_length, queued_since, failing, failing_since } = type;
  const waits = counted(queue_length, 'message waits', 'messages wait');
  if (failing > 0)
    return {
      tone: 'bad',
      text: instances === 1 ? 'Failing' : `${failing} of ${instances} failing`,
      ...(failing_since && { since: failing_since }),
    };
  if (online === 0 && queue_length > 0)
    return { tone: 'bad', text: `None online, ${waits}`, ...(queued_since && { since: queued_since }) };
  if (online === 0) return { tone: '', text: 'Offline' };
  if (unhealthy > 0) return { tone: 'wait', text: `${unhealthy} of ${instances} unhealthy` };
  if (draining === online) return { tone: 'wait', text: 'Draining' };
  if (queue_length > 0) return { tone: 'wait', text: waits, ...(queued_since && { since: queued_since }) };
  return { tone: 'good', text: 'Healthy' };
}

/** The order of two points in time, the earliest first and what has none last. */
export function bySince(one: string | undefined, other: string | undefined): number {
  if (one === other) return 0;
  return other === undefined || (one !== undefined && one < other) ? -1 : 1;
}

const ORDER: Health['tone'][] = ['bad', 'wait', 'good', ''];

/** The types that an address asks for: what is in trouble first, the longest first. */
export function shownTypes(types: readonly AgentTypeActivity[], { q = '', show }: FleetSearch): AgentTypeActivity[] {
  const fits = (type: AgentTypeActivity) => {
    if (!type.agent_type.toLowerCase().includes(q.toLowerCase())) return false;
    if (show === 'trouble') return healthOf(type).tone === 'bad' || type.failed_last_hour > 0 || type.unhealthy > 0;
    if (show === 'waiting') return type.queue_length > 0;
    return show === undefined || type.online === 0;
  };
  return types
    .filter(fits)
    .map((type) => ({ type, health: healthOf(type) }))
    .sort(
      (one, other) =>
        ORDER.indexOf(one.health.tone) - ORDER.indexOf(other.health.tone) ||
        bySince(one.health.since, other.health.since) ||
        one.type.agent_type.localeCompare(other.type.agent_type),
    )
    .map(({ type }) => type);
}

/** How full an instance is, by the bound that is nearest. `of`: null without a bound. */
export function roomOf(
  agent: Pick<ListedAgent, 'in_flight' | 'current_sessions' | 'max_concurrent_sessions' | 'max_concurrent_tasks'>,
): { used: number; of: number | null } {
  const { in_flight, current_sessions, max_concurrent_sessions: sessions, max_concurrent_tasks: tasks } = agent;
  const byTasks = tasks > 0 && (sessions === 0 || in_flight / tasks >= current_sessions / sessions);
  if (byTasks) return { used: in_flight, of: tasks };
  if (sessions > 0) return { used: current_sessions, of: sessions };
  return { used: in_flight, of: null };
}

/** `340 ms`, `1.8 s`, `2.5 min`; a dash for nothing. */
export function latencyText(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${(ms / 60_000).toFixed(1)} min`;
}

/** The program of an agent that joins, in the language that is asked for. */
export function joinLines(language: 'TypeScript' | 'Python', baseUrl: string): string {
  if (language === 'Python')
    return [
      'from agent_fleet import Agent',
      '',
      `agent = Agent("my-agent", url="${baseUrl}")`,
      'agent.on_message(lambda task: task.text.upper())',
      'agent.run()',
    ].join('\n');
  return [
    "import { Agent } from 'agent-fleet-sdk';",
    '',
    `const agent = new Agent({ type: 'my-agent', url: '${baseUrl}' });`,
    'agent.onMessage((task) => task.text.toUpperCase());',
    'await agent.connect();',
  ].join('\n');
}
