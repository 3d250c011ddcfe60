// @module-tag once
import { expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { type Dispatched, dispatched, echo, type RawAgent } from '../../setup/agent.js';
import type { SendOptions } from '../../setup/platform/api-client.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';
import { dispatchesTo, joinType, looksOf, to } from '../../system/fixture.js';

/** How far a message for an agent of another process has come: its agent works, has answered (the end waits for a lock), or has no room for it yet. */
const STEPS = ['sent', 'answered', 'queued'] as const;
type Step = (typeof STEPS)[number];

const redis = await redisServer();
const wayToCallers = await TcpProxy.to(redis.url);
const wayToHolders = await TcpProxy.to(redis.url);
const shared = await startPlatform({ REDIS_URL: wayToCallers.urlOf(redis.url), QUEUE_WAIT_MS: '120000' });
const { dispatchStates } = looksOf(shared);
const caller = shared.platform;

/** Holds the agents' sockets. */
const startHolder = (): Promise<TestPlatform> =>
  shared.startPeer({ env: { REDIS_URL: wayToHolders.urlOf(redis.url) } });

interface Sent {
  agent: RawAgent;
  options: SendOptions;
  messageId: string;
  answer: Promise<Task>;
}

/** One message at each step, from one process to an agent of another. */
class Messages {
  readonly at = {} as Record<Step, Sent>;
  readonly #caller: TestPlatform;
  readonly #prefix: string;
  readonly #held: Dispatched[] = [];
  #lock: RowLock | undefined;

  constructor(from: TestPlatform, prefix: string) {
    this.#caller = from;
    this.#prefix = prefix;
  }

  async bringTo(holder: TestPlatform): Promise<void> {
    for (const step of STEPS) {
      const type = `${this.#prefix}-${step}`;
      const agent = await joinType(holder, type, undefined, step === 'queued' ? 1 : 0);
      if (step === 'queued') await this.#caller.client.send('before it', { ...to(type), blocking: false });
      if (step === 'queued') this.#held.push(dispatched(agent, await agent.nextOfType('dispatch')));
      await this.#send(step, agent);
      if (step === 'sent') this.#held.push(dispatched(agent, await agent.nextOfType('dispatch')));
      if (step === 'answered') await this.#answerBehindLock(this.at[step]);
    }
  }

  /** What was held goes on. @param holderDied its connections die as well */
  async letGo(holderDied: boolean): Promise<void> {
    if (holderDied)
      await shared.database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
    await this.#lock?.release();
    for (const dispatch of this.#held) dispatch.result('done');
    if (holderDied) return;
    const { agent, messageId } = this.at.queued;
    const next = await agent.next(
      ({ type, payload }) => type === 'dispatch' && JSON.stringify(payload).includes(messageId),
    );
    dispatched(agent, next).result('done');
  }

  /** The end of each message, its dispatches, and how often it reached its agent. */
  async outcomes(): Promise<Record<Step, unknown>> {
    const outcomes = {} as Record<Step, unknown>;
    for (const step of STEPS) {
      const { messageId, agent } = this.at[step];
      const ended = async () => {
        const message = await caller.client.message(messageId);
        return message.completed_at ? message : undefined;
      };
      const what = `the end of the message that was ${step}`;
      const { state, error } = await until(ended, { timeoutMs: 90_000, what });
      const reached = dispatchesTo(agent).filter((frame) => JSON.stringify(frame).includes(messageId));
      outcomes[step] = [error?.code ?? state, await dispatchStates(messageId), reached.length];
    }
    return outcomes;
  }

  /** The states with which callers were answered. */
  answers(): Promise<string[]> {
    return Promise.all(STEPS.map(async (step) => (await this.at[step].answer).status.state));
  }

  /** Resolves when it is on the record. */
  async #send(step: Step, agent: RawAgent): Promise<void> {
    const options = { messageId: crypto.randomUUID(), ...to(`${this.#prefix}-${step}`) };
    const answer = this.#caller.client.send('go', options);
    answer.catch(() => undefined); // the process that owes it may die
    const find = 'SELECT message_id FROM messages WHERE client_message_id = $1';
    const sent = () => shared.database.value<string>(find, [options.messageId]);
    const messageId = await until(sent, { what: `the message that is to be ${step}` });
    this.at[step] = { agent, options, messageId, answer };
  }

  /** The node has the answer, and its transaction waits. */
  async #answerBehindLock({ agent, messageId }: Sent): Promise<void> {
    const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
    const row = 'SELECT 1 FROM running_messages WHERE message_id = $1';
    const lock = await RowLock.on(shared.database.url, row, [messageId]);
    this.#lock = lock;
    dispatch.result('done');
    await until(async () => (await lock.waiters()) > 0, { what: 'the end that waits for the lock' });
  }
}

const ONCE = ['completed', ['completed'], 1];
const ALL_ONCE = { sent: ONCE, answered: ONCE, queued: ONCE };

test('the process that took the calls dies: each is done once, and a repeat at another process gives it', async () => {
  const [holder, dying] = [await startHolder(), await shared.startPeer()];
  const messages = new Messages(dying, 'bereft');
  await messages.bringTo(holder);
  await dying.kill9();
  await messages.letGo(false);
  expect(await messages.outcomes()).toEqual(ALL_ONCE);
  for (const { options, messageId } of Object.values(messages.at)) {
    const repeated = await caller.client.send('go', options);
    expect(repeated).toMatchObject({ id: messageId, status: { state: 'completed' } });
  }
});

test('the node that holds the sockets dies: what may have reached an agent is lost, what waits goes to the next one', async () => {
  const dying = await startHolder();
  const messages = new Messages(caller, 'orphan');
  await messages.bringTo(dying);
  await dying.kill9();
  await messages.letGo(true);
  await joinType(await startHolder(), 'orphan-queued', echo);
  const lost = ['AGENT_DISCONNECTED', ['lost'], 1];
  const expected = { sent: lost, answered: lost, queued: ['completed', ['completed'], 0] };
  expect(await messages.outcomes()).toEqual(expected);
  expect(await messages.answers()).toEqual(['failed', 'failed', 'completed']);
}, 180_000);

test('Redis goes: each is done once, and its caller is answered', async () => {
  const holder = await startHolder();
  const messages = new Messages(caller, 'severed');
  await messages.bringTo(holder);
  wayToCallers.shut();
  wayToHolders.shut();
  await messages.letGo(false);
  expect(await messages.outcomes()).toEqual(ALL_ONCE);
  expect(await messages.answers()).toEqual(STEPS.map(() => 'completed'));
});
