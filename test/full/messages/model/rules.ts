/** How an agent answers a dispatch. */
export type AgentAnswer = 'result' | 'failure' | 'question';
/** How a message may end: its state, of a failed one with its code. */
export type End = 'completed' | 'canceled' | `failed ${string}`;

/** One dispatch as it reached an agent. Times are milliseconds of one clock. */
export interface Arrival {
  instanceId: string;
  dispatchId: string;
  at: number;
  answer?: { how: AgentAnswer; at: number };
  /** Since when the agent does not work on it any more: it has answered, was lost, or the caller has canceled. */
  overAt?: number;
}

/** What has happened to a message, as far as callers, agents and people can see it. */
export interface MessageFacts {
  /** Whether an agent that fits was ever registered. */
  hasTarget: boolean;
  isIdempotent: boolean;
  arrivals: Arrival[];
  /** When people began to answer a question of it, but for those who were refused. */
  decisions: number[];
  /** Somebody asked for its cancellation, or for the end of what its session has in flight. */
  cancelAsked: boolean;
  /** The platform has said that it is canceled. */
  isCanceled: boolean;
  /** An agent that may have had it left without its work, or a node was killed. */
  mayBeLost: boolean;
  /** It waited for an agent for as long as messages do at most. */
  hasWaited: boolean;
  /** No agent that fits was online for a while. */
  wasAlone: boolean;
}

/** How a message may end after what has happened. */
export function permittedEnds(facts: MessageFacts): Set<End> {
  if (facts.isCanceled) return new Set(['canceled']);
  const ends = new Set<End>();
  if (facts.cancelAsked) ends.add('canceled');
  if (!facts.hasTarget) return ends.add('failed TARGET_UNAVAILABLE');
  const answers = facts.arrivals.map(({ answer }) => answer?.how);
  if (answers.includes('result')) ends.add('completed');
  if (answers.includes('failure')) ends.add('failed HANDLER_ERROR');
  if (facts.mayBeLost && !facts.isIdempotent) ends.add('failed AGENT_DISCONNECTED');
  const isQueued = facts.arrivals.length === 0 || (facts.isIdempotent && facts.mayBeLost);
  if (isQueued && facts.hasWaited && facts.wasAlone) ends.add('failed TARGET_UNAVAILABLE');
  return ends;
}

/** What is wrong with the arrivals of a message at agents: it may reach one only, and another one only after a person's answer or if it is idempotent. */
export function arrivalDefects({ arrivals, isIdempotent, decisions, mayBeLost }: MessageFacts): string[] {
  const defects: string[] = [];
  for (const [index, next] of arrivals.entries()) {
    const before = arrivals[index - 1];
    if (!before) continue;
    if (next.dispatchId === before.dispatchId) {
      if (next.instanceId !== before.instanceId) defects.push(`${next.dispatchId} reached two agents`);
      continue; // a second time after the socket was lost
    }
    if (isIdempotent && mayBeLost) continue;
    const { answer } = before;
    const isDecided = answer?.how === 'question' && decisions.some((at) => at >= answer.at && at <= next.at);
    if (!isDecided)
      defects.push(`sent to ${next.instanceId} after ${before.instanceId} had it (${answer?.how ?? 'no answer'})`);
  }
  return defects;
}

/** A message of an ordered session. */
export interface Turn {
  name: string;
  /** When the call began, and when it was answered, which is after the acceptance. */
  sentAt: number;
  acceptedAt: number;
  arrivals: Arrival[];
}

/** What is wrong with the order in which an ordered session's messages reached agents; those that were sent at the same moment have none. */
export function orderDefects(turns: Turn[]): string[] {
  return turns.flatMap((first) =>
    turns.flatMap((second) => {
      const begin = second.arrivals[0];
      if (first === second || first.acceptedAt > second.sentAt || !begin) return [];
      const late = first.arrivals.find(({ at, overAt = Number.POSITIVE_INFINITY }) => Math.max(at, overAt) > begin.at);
      return late ? [`${second.name} reached an agent before ${first.name}, which was sent first, was over`] : [];
    }),
  );
}

/** An agent as far as room counts. */
export interface AgentRoom {
  /** 0: any number. */
  maxSessions: number;
  isOnline: boolean;
  /** Sessions of which it works on a message now. */
  atWork: ReadonlySet<string>;
}

/** Whether an agent can take a message of this session; of a new one where it is undefined. */
export function hasRoom(agent: AgentRoom, session: string | undefined): boolean {
  if (!agent.isOnline) return false;
  if (agent.maxSessions === 0 || (session !== undefined && agent.atWork.has(session))) return true;
  const others = [...agent.atWork].filter((one) => one !== session);
  return others.length < agent.maxSessions;
}
