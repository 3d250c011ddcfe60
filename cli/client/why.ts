import type { AgentInstance } from '../../contracts/api/agents.js';
import type { MessageRecord, WaitsFor } from '../../contracts/api/messages.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { isTerminal, isUnderWay } from '../../contracts/message-states.js';
import { read, type Session } from './connection.js';
import { distance } from './terminal.js';

type Instance = Pick<
  AgentInstance,
  | 'instance_id'
  | 'agent_type'
  | 'status'
  | 'last_seen'
  | 'current_sessions'
  | 'max_concurrent_sessions'
  | 'max_concurrent_tasks'
> & { in_flight: number };

/** What is known of a message. */
export interface Facts {
  message: MessageRecord;
  /** Those that it is for, or that has it. */
  agents: Instance[];
  /** Messages of its session that came before it and are not over; of an ordered session. */
  before: Pick<MessageRecord, 'message_id' | 'state'>[];
  /** Of a message that was canceled. */
  cancelReason: string;
}

const AGENTS_SHOWN = 5;

function targetText(target: WaitsFor['target']): string {
  const { instance_id, agent_type, skill_id } = target ?? {};
  if (instance_id !== undefined) return `the agent ${instance_id}`;
  const skill = skill_id === undefined ? '' : ` with the skill ${skill_id}`;
  return agent_type === undefined || agent_type === ''
    ? `an agent${skill}`
    : `an agent of the type ${agent_type}${skill}`;
}

function aheadText(ahead: number | undefined): string[] {
  if (ahead === undefined) return [];
  if (ahead === 0) return ['It is the first in its queue.'];
  return [`${ahead} ${ahead === 1 ? 'message comes' : 'messages come'} first.`];
}

/** How each agent stands, for a message that waits for one. */
function agentLines(agents: readonly Instance[], now: number): string[] {
  const lines = agents.slice(0, AGENTS_SHOWN).map((agent) => {
    const { instance_id, status, last_seen, in_flight, max_concurrent_tasks: most } = agent;
    const room = most === 0 ? `${in_flight} messages` : `${in_flight} of ${most} messages`;
    const sessions = `${agent.current_sessions} of ${agent.max_concurrent_sessions || 'any number of'} sessions`;
    const seen = last_seen === null ? 'never seen' : `last seen ${distance(last_seen, now)} ago`;
    return `${instance_id} is ${status}: it has ${room} and ${sessions}, ${seen}.`;
  });
  const more = agents.length - lines.length;
  return more > 0 ? [...lines, `And ${more} more.`] : lines;
}

function waitLines(
  { message, agents, before }: Facts,
  { kind, target, since, ahead }: WaitsFor,
  now: number,
): string[] {
  const whom = targetText(target);
  const [first] = [...before].reverse();
  const texts: Record<WaitsFor['kind'], string[]> = {
    agent: [
      agents.length === 0
        ? `It waits for ${whom}, and none is registered.`
        : `It waits for ${whom}: of ${agents.length} that ${agents.length === 1 ? 'is' : 'are'} registered none is online.`,
      ...agentLines(agents, now),
      'It fails if none comes in time.',
    ],
    room: [`It waits for ${whom} to have room: all that are online are full.`, ...agentLines(agents, now)],
    turn: [
      'Its session is ordered, and another message comes first.',
      ...(first
        ? [`${first.message_id} is ${first.state}: \`fleet why ${first.message_id}\` says what that waits for.`]
        : []),
    ],
    evaluator: ['A policy has to be decided by an evaluator outside, which has not answered yet.'],
    quota: ['Agents have as many messages of this tenant as they may at once. It goes on when one of them ends.'],
    person: personLines(message),
  };
  return [
    ...texts[kind],
    ...(kind === 'person' ? [] : [`It has waited for ${distance(since, now)}.`]),
    ...aheadText(ahead),
  ];
}

const ASKERS: Record<string, string> = { policy: 'A policy', guard: 'A guard', agent: 'The agent', plan: 'Its plan' };

function personLines({ message_id, input_request: request }: MessageRecord): string[] {
  if (!request) return ['It waits for a person.'];
  const { source, title, prompt, tool, arguments: given, approvers = [], quorum, approvals, expires_at } = request;
  const asked = [...new Set([title, prompt])].filter((text) => text !== '').join(/[.?!:]$/.test(title) ? ' ' : ': ');
  const call = tool === undefined ? [] : [`It is about the tool ${tool} with ${JSON.stringify(given ?? {})}.`];
  const who = approvers.length > 0 ? `${approvers.join(', ')}, or anybody with the scope admin,` : 'Whoever may';
  const decided = quorum > 1 ? [`${approvals.length} of ${quorum} people have approved.`] : [];
  return [
    `${ASKERS[source] ?? source} asks a person: ${asked}`,
    ...call,
    ...decided,
    `${who} answers with \`fleet resolve ${message_id}\`, until ${expires_at}.`,
  ];
}

function failureLines({ error, message_id, started_at, instance_id }: MessageRecord): string[] {
  const code = error?.code ?? 'INTERNAL';
  const had = started_at === undefined ? 'No agent had got it.' : `The agent ${instance_id ?? ''} had got it.`;
  return [
    `It failed: ${error?.message ?? code}`,
    `${had} The code is ${code}: docs/errors.md says what causes it and what helps.`,
    `\`/messages/retry\` with the message_id ${message_id} sends it again.`,
  ];
}

/** What a message waits for, or why it ended as it did, in sentences. */
export function explain(facts: Facts, now = Date.now()): string[] {
  const { message, agents, cancelReason } = facts;
  const { state, waits_for, instance_id, agent_type, started_at, completed_at, created_at } = message;
  const agent = instance_id === null ? 'an agent' : `the agent ${instance_id} (${agent_type ?? 'unknown type'})`;
  switch (state) {
    case 'completed':
      return [
        `It was completed by ${agent} at ${completed_at}, ${distance(created_at, Date.parse(completed_at ?? created_at))} after it was sent.`,
      ];
    case 'failed':
      return failureLines(message);
    case 'canceled':
      return [`It was canceled at ${completed_at}${cancelReason === '' ? '.' : `: ${cancelReason}`}`];
    case 'input-required':
      return personLines(message);
    case 'submitted':
    case 'working':
      if (waits_for) return waitLines(facts, waits_for, now);
      if (started_at === undefined) return ['It was accepted, and is about to go to an agent.'];
      return [`It is with ${agent}, since ${distance(started_at, now)} ago.`, ...agentLines(agents, now)];
    default:
      state satisfies never;
      return [`It is ${state}.`]; // of a newer platform
  }
}

/** Reads what there is to say about a message. */
export async function factsOf(session: Session, message_id: string): Promise<Facts> {
  const { message } = await read(session, OPERATIONS.getMessage, { message_id });
  const { state, waits_for, agent_type, instance_id, session_id } = message;
  const target = { agent_type, instance_id, ...waits_for?.target };
  const about = target.agent_type ? { agent_type: target.agent_type } : {};
  const listed = isUnderWay(state)
    ? await read(session, OPERATIONS.getAgents, { ...about, page_size: 100 })
    : { agents: [] };
  const agents = target.instance_id
    ? listed.agents.filter((agent) => agent.instance_id === target.instance_id)
    : listed.agents;
  const others =
    waits_for?.kind === 'turn'
      ? (await read(session, OPERATIONS.getMessages, { session_id, page_size: 100 })).messages
      : [];
  const before = others.filter((other) => other.message_id < message_id && !isTerminal(other.state));
  const canceled = { message_id, type: 'message.canceled' };
  const { events } = state === 'canceled' ? await read(session, OPERATIONS.getEvents, canceled) : { events: [] };
  return { message, agents, before, cancelReason: String(events[0]?.event.reason ?? '') };
}
