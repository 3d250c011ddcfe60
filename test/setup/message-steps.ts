import { randomUUID } from 'node:crypto';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { HTTP_ERRORS } from '../../contracts/errors.js';
import type { Behaviour, Dispatched } from './agent.js';
import type { FreshDatabase } from './database.js';
import type { ApiClient, RpcAnswer, SendOptions } from './platform/api-client.js';
import { RowLock } from './row-lock.js';
import { until } from './until.js';

/** Where a message stands when its process is stopped. */
export type MessageStep =
  /** Its first transaction waits for a lock. */
  | 'accepting'
  /** The agent has it, and answers while the process stands still. */
  | 'early'
  /** The agent has it, and answers when another process has looked after the message. */
  | 'late'
  /** The agent has answered, and the last transaction waits for a lock. */
  | 'storing'
  /** The request lies in the socket, unread. */
  | 'unread';

const HELD_STEPS = ['early', 'late', 'storing'] as const;
const MESSAGES_AT_A_STEP = 2;
const TRY_AGAIN: number[] = [HTTP_ERRORS.SERVICE_UNAVAILABLE, HTTP_ERRORS.RATE_LIMITED];

/** Messages on their way through a platform, each held at its step by locks and by an agent that waits. */
export class MessageSteps {
  readonly #round: string;
  readonly #client: ApiClient;
  readonly #database: FreshDatabase;
  readonly #answers = new Map<string, Promise<RpcAnswer>>();
  readonly #held = new Map<string, Dispatched>();
  /** By the text of the message. */
  readonly #sessions = new Map<string, string>();
  readonly #locks: RowLock[] = [];

  /** @param round tells these messages from others */
  constructor(round: string, client: ApiClient, database: FreshDatabase) {
    this.#round = round;
    this.#client = client;
    this.#database = database;
  }

  /** The texts of the messages at these steps. */
  texts(...steps: MessageStep[]): string[] {
    const numbers = Array.from({ length: MESSAGES_AT_A_STEP }, (_, index) => index + 1);
    return steps.flatMap((step) => numbers.map((number) => `${this.#round}, ${step} ${number}`));
  }

  /** The agent's part: it answers at once what is not to be held, also what it is given when another took a message over. */
  readonly behaviour: Behaviour = (dispatch) => {
    if (this.texts(...HELD_STEPS).includes(dispatch.text) && !this.#held.has(dispatch.text))
      this.#held.set(dispatch.text, dispatch);
    else dispatch.result(`done: ${dispatch.text}`);
  };

  /**
   * Brings messages to every step before the process stops: at once, so that none is handed to its workflow yet. Each is in a session of
   * its own, which is the agent's; another of its type takes over when it is gone.
   */
  async prepare(instanceId: string): Promise<void> {
    const [accepting, held, storing] = [this.texts('accepting'), this.texts(...HELD_STEPS), this.texts('storing')];
    for (const text of [...accepting, ...held]) {
      const { session_id } = await this.#client.ok('/sessions/init', { instance_id: instanceId }, SessionInitResponse);
      this.#sessions.set(text, session_id);
    }
    const idsOf = (texts: string[]) => texts.map((text) => this.#sessions.get(text) as string);
    const sessions = await this.#lock('SELECT 1 FROM sessions WHERE session_id = ANY ($1)', idsOf(accepting));
    for (const [text, contextId] of this.#sessions) this.#send(text, { contextId });
    await until(() => this.#held.size === held.length, { what: 'the dispatches' });
    await until(async () => (await sessions.waiters()) >= accepting.length, { what: 'accepts that wait' });
    const messageIds = storing.map((text) => this.#held.get(text)?.payload.session_context.message_id);
    const messages = await this.#lock('SELECT 1 FROM running_messages WHERE message_id = ANY ($1)', messageIds);
    this.answer('storing');
    await until(async () => (await messages.waiters()) >= storing.length, { what: 'results that wait' });
  }

  /** Callers come whom the stopped process does not hear. */
  sendUnread(agentType: string): void {
    for (const text of this.texts('unread')) this.#send(text, { metadata: { agent_type: agentType } });
  }

  /** The agent answers what it holds at this step. */
  answer(step: (typeof HELD_STEPS)[number]): void {
    for (const text of this.texts(step)) this.#held.get(text)?.result(`done: ${text}`);
  }

  /** What waits for locks goes on. */
  async releaseLocks(): Promise<void> {
    for (const lock of this.#locks.splice(0)) await lock.release();
  }

  /** Ends the sessions that were made for the messages. */
  async closeSessions(client: ApiClient): Promise<void> {
    for (const session_id of this.#sessions.values()) await client.post('/sessions/close', { session_id });
  }

  /** The caller's answer. */
  async answerTo(text: string): Promise<RpcAnswer> {
    const answer = this.#answers.get(text);
    if (!answer) throw new Error(`nobody sent ${text}`);
    return answer;
  }

  /** Sends and goes on; `answerTo` awaits the answer. A caller that is asked to try again does so, with the same messageId. */
  #send(text: string, where: Pick<SendOptions, 'contextId' | 'metadata'>): void {
    const options = { ...where, messageId: randomUUID() };
    const send = async (): Promise<RpcAnswer> => {
      const answer = await this.#client.rpc(text, options);
      return TRY_AGAIN.includes(answer.status) ? this.#client.rpc(text, options) : answer;
    };
    const answer = send();
    answer.catch(() => undefined); // it is awaited later
    this.#answers.set(text, answer);
  }

  async #lock(select: string, ids: readonly unknown[]): Promise<RowLock> {
    const lock = await RowLock.on(this.#database.url, select, [ids]);
    this.#locks.push(lock);
    return lock;
  }
}
