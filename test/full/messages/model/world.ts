import { MessagesGetResponse } from '../../../../contracts/api/messages.js';
import { isTerminal } from '../../../../contracts/message-states.js';
import type { SendOptions } from '../../../setup/platform/api-client.js';
import type { Home } from '../../../setup/platform/fleet.js';
import { until } from '../../../setup/until.js';
import type { Delivery, FleetAgent } from './agents.js';
import { type Nodes, QUEUE_WAIT_MS } from './nodes.js';
import { type AgentAnswer, type AgentRoom, type Arrival, type End, hasRoom, type MessageFacts } from './rules.js';

/** What the agent is to do with a message: the first word of its text. Who hangs is told later how to answer. */
export type Wish = 'answer' | 'fail' | 'ask' | 'hang';
const ANSWERS = { answer: 'result', fail: 'failure', ask: 'question' } as const;

/** The clock reads some of the platform's times a little late. */
const CLOCK_SLACK_MS = 500;
/** More messages than a script sends. */
const PAGE_SIZE = 100;

export interface ScriptSession {
  /** Undefined until the platform has told. */
  id: string | undefined;
  type: string;
  /** Of `/sessions/init`, and its messages reach agents one after the other. */
  isOrdered: boolean;
  isClosed: boolean;
}

/** A message that a script sends, with what became of it. */
export interface ScriptMessage extends Omit<MessageFacts, 'hasWaited'> {
  /** Its text, which no other message has; `messageId` of its sender too. */
  key: string;
  wish: Wish;
  options: SendOptions;
  session: ScriptSession;
  /** Whether it opened its session. */
  opensSession: boolean;
  fits(agent: FleetAgent): boolean;
  sentAt: number;
  acceptedAt: number;
  id?: string;
  /** Callers know neither that it was accepted nor that it was not. */
  isUnknown: boolean;
  isRefused: boolean;
  /** What a call was answered with, if it was over by then. */
  answeredState?: string;
  end?: { how: End; at: number };
  /** How often a person was told that the answer counts. */
  decided: number;
}

interface Held {
  arrival: Arrival;
  delivery: Delivery;
}

/** One script's tenant: what it has sent, its agents, and what they were given. */
export class World {
  readonly agents: FleetAgent[] = [];
  readonly messages: ScriptMessage[] = [];
  readonly sessions: ScriptSession[] = [];
  /** Calls that wait for the end of their message. */
  readonly calls: Promise<void>[] = [];
  readonly defects: string[] = [];
  /** Dispatches that agents keep until they are told how to answer. */
  held: Held[] = [];
  /** Nobody hangs or asks any more. */
  isFinishing = false;

  constructor(
    readonly nodes: Nodes,
    /** The tenant's way in by each node. */
    readonly homes: Home[],
  ) {}

  get client() {
    return (this.homes[0] as Home).client;
  }

  get running(): ScriptMessage[] {
    return this.messages.filter(({ end, isRefused }) => !end && !isRefused);
  }

  ofSession(session: ScriptSession): ScriptMessage[] {
    return this.messages.filter((message) => message.session === session);
  }

  /** An agent has got a dispatch. */
  readonly deliver = (delivery: Delivery): void => {
    const { instanceId, messageId, sessionId, dispatchId, text } = delivery;
    const message = this.messages.find(({ key }) => key === text);
    if (!message) return void this.defects.push(`${instanceId} was given ${text}, which its tenant has not sent`);
    this.learnId(message, messageId, sessionId);
    const again = message.arrivals.find((one) => one.dispatchId === dispatchId && one.instanceId === instanceId);
    const at = performance.now();
    // One that was on its way as its cancellation was asked for is over too.
    const arrival = again ?? { instanceId, dispatchId, at, ...(message.cancelAsked && { overAt: at }) };
    if (!again) {
      if (!message.cancelAsked) this.#expectRoom(message, instanceId);
      message.arrivals.push(arrival);
    }
    this.held = this.held.filter((one) => one.arrival !== arrival);
    if (arrival.answer) {
      delivery.end(arrival.answer.how);
      return;
    }
    this.held.push({ arrival, delivery });
    const { wish } = message;
    if (wish !== 'hang' && !(wish === 'ask' && delivery.isDecided)) this.answer(arrival, ANSWERS[wish]);
    else if (wish !== 'hang' || this.isFinishing) this.answer(arrival, 'result');
  };

  answer(arrival: Arrival, how: AgentAnswer): void {
    const held = this.held.find((one) => one.arrival === arrival);
    if (!held) return;
    this.held = this.held.filter((one) => one !== held);
    arrival.answer = { how, at: performance.now() };
    arrival.overAt ??= arrival.answer.at;
    held.delivery.end(how);
  }

  /** The platform has told which task a message is. It is always the same one. */
  learnId(message: ScriptMessage, id: string, sessionId: string): void {
    message.id ??= id;
    message.session.id ??= sessionId;
    if (message.id !== id) this.defects.push(`${message.key} is ${id} as well as ${message.id}`);
    if (message.session.id !== sessionId)
      this.defects.push(`${message.key} is in ${sessionId}, not ${message.session.id}`);
  }

  /**
   * What was at work on agents that fit may be lost: its program ends, or its work does.
   * @param keeps the agent still has it, and answers
   */
  loseWorkOf(agent: FleetAgent, keeps = false): void {
    for (const message of this.running) {
      if (message.fits(agent)) message.mayBeLost = true;
      for (const arrival of message.arrivals.filter(({ instanceId }) => instanceId === agent.options.instanceId)) {
        arrival.overAt ??= performance.now();
        if (agent.failsUnfinished) arrival.answer ??= { how: 'failure', at: arrival.overAt };
      }
    }
    const isOver = ({ arrival }: { arrival: Arrival }) =>
      arrival.instanceId === agent.options.instanceId && arrival.overAt;
    if (!keeps) this.held = this.held.filter((held) => !isOver(held));
    this.noteAlone();
  }

  /** Somebody asks for the cancellation of these: agents are not at work on them from now on. */
  askCancel(messages: ScriptMessage[]): void {
    for (const message of messages.filter(({ end }) => !end)) {
      message.cancelAsked = true;
      for (const arrival of message.arrivals) arrival.overAt ??= performance.now();
    }
  }

  /** Does what must be done: again and again where nodes have been killed or cut off, or ask for that. */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!this.nodes.wereInTrouble && !/ answered 429/.test(String(error))) throw error;
      const { done } = await until(async () => ({ done: await work() }), { timeoutMs: 60_000 });
      return done;
    }
  }

  /** @param leaving an agent that is about to go */
  noteAlone(leaving?: FleetAgent): void {
    const online = this.agents.filter((agent) => isOnline(agent) && agent !== leaving);
    for (const message of this.running) if (!online.some((agent) => message.fits(agent))) message.wasAlone = true;
  }

  /** Reads how far the tenant's messages are. @returns the records */
  async refresh() {
    const list = () => this.client.ok('/messages/get', { page_size: PAGE_SIZE }, MessagesGetResponse);
    const { messages: records } = await this.persist(list);
    for (const { message_id, session_id, state, error, user_input } of records) {
      const message = this.messages.find(({ key }) => key === user_input);
      if (!message) this.defects.push(`the tenant has ${message_id} with ${user_input}, which it has not sent`);
      else this.learnId(message, message_id, session_id);
      if (message && isTerminal(state)) this.noteEnd(message, (error ? `${state} ${error.code}` : state) as End);
    }
    return records;
  }

  noteEnd(message: ScriptMessage, how: End): void {
    message.end ??= { how, at: performance.now() };
    if (message.end.how !== how) this.defects.push(`${message.key} ended as ${message.end.how} and as ${how}`);
  }

  factsOf(message: ScriptMessage): MessageFacts {
    const endsAt = message.end?.at ?? performance.now();
    const wasKilled = this.nodes.kills.some(({ at, until }) => at <= endsAt && until >= message.sentAt);
    return {
      ...message,
      arrivals: message.arrivals.map((arrival) => ({ ...arrival, ...this.#over(arrival) })),
      mayBeLost: message.mayBeLost || wasKilled,
      hasWaited: endsAt - message.sentAt >= QUEUE_WAIT_MS - CLOCK_SLACK_MS,
      wasAlone: message.wasAlone || wasKilled,
    };
  }

  /** Messages that are with no agent although one could take them: new ones, and those that a person has answered. */
  takeable(): ScriptMessage[] {
    return this.running.filter((message) => {
      const { isUnknown, acceptedAt, cancelAsked, arrivals, decided, opensSession, session, fits } = message;
      const last = arrivals.at(-1);
      const isDecided = last?.answer?.how === 'question' && decided >= arrivals.length;
      if (isUnknown || cancelAsked || acceptedAt > performance.now() || this.factsOf(message).mayBeLost) return false;
      if (last)
        return (
          isDecided &&
          this.agents.some(
            (agent) => agent.options.instanceId === last.instanceId && hasRoom(this.#roomOf(agent), session.id),
          )
        );
      return opensSession && this.agents.some((agent) => fits(agent) && hasRoom(this.#roomOf(agent), undefined));
    });
  }

  #roomOf(agent: FleetAgent): AgentRoom {
    const { instanceId, maxSessions } = agent.options;
    const mayBeAtWork = [...this.#atWork(instanceId), ...this.#perhapsCanceled(instanceId)];
    const atWork = new Set(mayBeAtWork.map(({ session }) => session.id ?? ''));
    return { maxSessions, isOnline: isOnline(agent), atWork };
  }

  /** Who asked for the cancellation may have done so before the message was there: then it is not canceled, and its agent works on. */
  #perhapsCanceled(instanceId: string): ScriptMessage[] {
    const isOpen = (arrival: Arrival) => arrival.instanceId === instanceId && !arrival.answer;
    return this.running.filter(({ cancelAsked, arrivals }) => cancelAsked && arrivals.some(isOpen));
  }

  #atWork(instanceId: string): ScriptMessage[] {
    const isAtWork = (arrival: Arrival) =>
      arrival.instanceId === instanceId && this.#over(arrival).overAt === undefined;
    return this.messages.filter(({ arrivals }) => arrivals.some(isAtWork));
  }

  /** What an agent had when a node was killed is over, unless it was before. */
  #over({ at, overAt }: Arrival): { overAt?: number } {
    const killedAt = this.nodes.kills.find((kill) => kill.at >= at)?.at;
    const times = [overAt, killedAt].filter((one) => one !== undefined);
    return times.length > 0 ? { overAt: Math.min(...times) } : {};
  }

  #expectRoom(message: ScriptMessage, instanceId: string): void {
    const agent = this.agents.find(({ options }) => options.instanceId === instanceId);
    const { maxSessions = 0 } = agent?.options ?? {};
    const atWork = this.#atWork(instanceId);
    const sessions = new Set([message, ...atWork].map(({ session }) => session));
    if (maxSessions > 0 && sessions.size > maxSessions)
      this.defects.push(
        `${instanceId} got ${message.key} in session ${sessions.size} of ${maxSessions}, beside ${atWork.map(({ key }) => key).join(', ')}`,
      );
    if (!message.session.isOrdered) return;
    const all = this.agents.flatMap(({ options }) => this.#atWork(options.instanceId));
    const other = all.find((one) => one !== message && one.session === message.session);
    if (other) this.defects.push(`${message.key} reached ${instanceId} beside ${other.key} of its ordered session`);
  }
}

const isOnline = ({ isHere, isDraining }: FleetAgent): boolean => isHere && !isDraining;
