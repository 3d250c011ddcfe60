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

/** How far a forwarded dispatch has come, in the order in which a test brings one there. */
const STEPS = ['sent', 'answered', 'recorded', 'read', 'forwarded'] as const;
type Step = (typeof STEPS)[number];

/** How long the database's answers are on their way to the node, while it reads a dispatch. */
const READING_MS = 3_000;
const TOO_LARGE_FOR_REDIS = 'x'.repeat(200_000);

const redis = await redisServer();
/** Messages between nodes that are lost on the way to those processes: kinds, as they stand in the message. */
const lost = { callers: new Set<string>(), holders: new Set<string>() };
const lossyRedis = (way: keyof typeof lost) =>
  TcpProxy.to(redis.url, { arrives: (chunk) => ![...lost[way]].some((kind) => chunk.includes(`"kind":"${kind}"`)) });
const wayToCallers = await lossyRedis('callers');
const wayToHolders = await lossyRedis('holders');
const shared = await startPlatform({ REDIS_URL: wayToCallers.urlOf(redis.url), QUEUE_WAIT_MS: '120000' });
const { hasWorkflow, dispatchStates } = looksOf(shared);
const caller = shared.platform;
/** Dispatches that nodes have asked the database for. */
let reads = 0;
const wayToDatabase = await TcpProxy.to(shared.database.url, {
  reader: () => (chunk) => {
    if (chunk.includes('find_dispatch')) reads += 1;
  },
});

/** Holds the agents' sockets. */
const startHolder = (): Promise<TestPlatform> =>
  shared.startPeer({
    env: { REDIS_URL: wayToHolders.urlOf(redis.url), DATABASE_URL: wayToDatabase.urlOf(shared.database.url) },
  });

interface Forwarded {
  agent: RawAgent;
  options: SendOptions;
  messageId: string;
  text: string;
  answer: Promise<Task>;
}

/** One forwarded dispatch at each step, from one process to another. */
class Dispatches {
  readonly at = {} as Record<Step, Forwarded>;
  readonly #caller: TestPlatform;
  readonly #prefix: string;
  readonly #agents = new Map<Step, RawAgent>();
  #held: Dispatched | undefined;
  #lock: RowLock | undefined;

  constructor(from: TestPlatform, prefix: string) {
    this.#caller = from;
    this.#prefix = prefix;
  }

  async bringTo(holder: TestPlatform): Promise<void> {
    for (const step of STEPS) {
      const waits = step === 'sent' || step === 'answered';
      this.#agents.set(step, await joinType(holder, `${this.#prefix}-${step}`, waits ? undefined : echo));
    }
    // The first messages may come before the processes have found each other.
    const warm = `${this.#prefix}-warm`;
    await joinType(holder, warm, echo);
    await until(async () => !(await hasWorkflow((await this.#caller.client.send('warm', to(warm))).id)));
    await this.#send('sent');
    this.#held = dispatched(this.at.sent.agent, await this.at.sent.agent.nextOfType('dispatch'));
    await this.#send('answered');
    await this.#answerBehindLock();
    lost.callers.add('dispatch_taken').add('dispatch_ended');
    await this.#send('recorded');
    const recorded = async () => (await dispatchStates(this.at.recorded.messageId))[0] === 'completed';
    await until(recorded, { what: 'the recorded end' });
    const before = reads;
    wayToDatabase.latencyMs = READING_MS;
    await this.#send('read', TOO_LARGE_FOR_REDIS);
    await until(() => reads > before, { what: 'the node reads the dispatch' });
    lost.holders.add('dispatch');
    await this.#send('forwarded');
  }

  /** What is to happen after a death: what was held goes on. @param holderDied its connections die as well */
  async letGo(holderDied: boolean): Promise<void> {
    wayToDatabase.latencyMs = 0;
    for (const kinds of Object.values(lost)) kinds.clear();
    if (holderDied)
      await shared.database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
    await this.#lock?.release();
    this.#held?.result('done');
  }

  /** The end of each message, as the caller's process or another gives it, its dispatches, and how often it reached its agent. */
  async outcomes(): Promise<Record<Step, unknown>> {
    const outcomes = {} as Record<Step, unknown>;
    for (const step of STEPS) {
      const { messageId, agent } = this.at[step];
      const ended = async () => {
        const message = await caller.client.message(messageId);
        return message.completed_at ? message : undefined;
      };
      const what = `the end of the dispatch that was ${step}`;
      const { state, error } = await until(ended, { timeoutMs: 90_000, what });
      const reached = dispatchesTo(agent).filter((frame) => JSON.stringify(frame).includes(messageId));
      outcomes[step] = [error?.code ?? state, await dispatchStates(messageId), reached.length];
    }
    return outcomes;
  }

  /** The states with which callers were answered. */
  async answers(): Promise<string[]> {
    return Promise.all(STEPS.map(async (step) => (await this.at[step].answer).status.state));
  }

  /** Resolves when its dispatch is on the record. */
  async #send(step: Step, text = 'go'): Promise<void> {
    const agent = this.#agents.get(step) as RawAgent;
    const type = `${this.#prefix}-${step}`;
    const options = { messageId: crypto.randomUUID(), ...to(type) };
    const answer = this.#caller.client.send(text, options);
    answer.catch(() => undefined); // the process that owes it may die
    const find = 'SELECT message_id FROM dispatches WHERE agent_type = $1';
    const sent = async () => (await shared.database.query<{ message_id: string }>(find, [type]))[0]?.message_id;
    const messageId = await until(sent, { what: `the dispatch that is to be ${step}` });
    this.at[step] = { agent, options, messageId, text, answer };
  }

  /** The node has the answer, and its transaction waits. */
  async #answerBehindLock(): Promise<void> {
    const { agent, messageId } = this.at.answered;
    const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
    const row = 'SELECT 1 FROM running_messages WHERE message_id = $1';
    const lock = await RowLock.on(shared.database.url, row, [messageId]);
    this.#lock = lock;
    dispatch.result('done');
    await until(async () => (await lock.waiters()) > 0, { what: 'the end that waits for the lock' });
  }
}

const ONCE = ['completed', ['completed'], 1];
const ROUTED_AGAIN = ['completed', ['released', 'completed'], 1];

test('the process that took the calls dies: each is done once, and a repeat at another process gives it', async () => {
  const [holder, dying] = [await startHolder(), await shared.startPeer()];
  const dispatches = new Dispatches(dying, 'bereft');
  await dispatches.bringTo(holder);
  await dying.kill9();
  await dispatches.letGo(false);
  const expected = { sent: ONCE, answered: ONCE, recorded: ONCE, read: ONCE, forwarded: ROUTED_AGAIN };
  expect(await dispatches.outcomes()).toEqual(expected);
  for (const { options, messageId, text } of Object.values(dispatches.at)) {
    const repeated = await caller.client.send(text, options);
    expect(repeated).toMatchObject({ id: messageId, status: { state: 'completed' } });
  }
});

test('the node that holds the sockets dies: what may have reached an agent is lost, what is recorded is answered', async () => {
  const dying = await startHolder();
  const idle = await joinType(dying, 'orphan-next');
  const dispatches = new Dispatches(caller, 'orphan');
  await dispatches.bringTo(dying);
  await dying.kill9();
  await dispatches.letGo(true);
  // Its agents are still on the routes, and Redis says that nobody listens.
  const next = caller.client.send('go', { ...to('orphan-next'), blocking: false });
  const lostAfter = (deliveries: number) => ['AGENT_DISCONNECTED', ['lost'], deliveries];
  const [reached, unknown] = [lostAfter(1), lostAfter(0)];
  const expected = { sent: reached, answered: reached, recorded: ONCE, read: unknown, forwarded: unknown };
  expect(await dispatches.outcomes()).toEqual(expected);
  expect(await dispatches.answers()).toEqual(['failed', 'failed', 'completed', 'failed', 'failed']);
  await joinType(await startHolder(), 'orphan-next', echo);
  await caller.client.untilState((await next).id, 'completed', 90_000);
  expect(dispatchesTo(idle)).toEqual([]);
}, 180_000);

test('Redis goes: each is done once, and its caller is answered', async () => {
  const holder = await startHolder();
  const dispatches = new Dispatches(caller, 'severed');
  await dispatches.bringTo(holder);
  wayToCallers.shut();
  wayToHolders.shut();
  await dispatches.letGo(false);
  // Nothing is heard of the one that the node is reading: its workflow may ask before the node has it.
  const read = expect.toBeOneOf([ONCE, ROUTED_AGAIN]);
  const expected = { sent: ONCE, answered: ONCE, recorded: ONCE, read, forwarded: ROUTED_AGAIN };
  expect(await dispatches.outcomes()).toEqual(expected);
  expect(await dispatches.answers()).toEqual(STEPS.map(() => 'completed'));
});
