import { expect, inject, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { type Behaviour, type Dispatched, dispatched, echo, type RawAgent } from '../../setup/agent.js';
import { CountedTemporal } from '../../setup/platform/counted-temporal.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { FAST_PATH } from '../../setup/platform/paths.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';

/** How far a forwarded dispatch has come, in the order in which a test brings one there. */
const STEPS = ['sent', 'answered', 'recorded', 'read', 'forwarded'] as const;
type Step = (typeof STEPS)[number];

/** How long the database's answers are on their way to the node, while it reads a dispatch. */
const READING_MS = 3_000;
const TOO_LARGE_FOR_REDIS = 'x'.repeat(200_000);

const redis = await redisServer();
const temporal = await CountedTemporal.to(inject('temporalAddress'));
/** Messages between nodes that are lost on the way to those processes: kinds, as they stand in the message. */
const lost = { callers: new Set<string>(), holders: new Set<string>() };
const lossyRedis = (to: keyof typeof lost) =>
  TcpProxy.to(redis.url, { arrives: (chunk) => ![...lost[to]].some((kind) => chunk.includes(`"kind":"${kind}"`)) });
const wayToCallers = await lossyRedis('callers');
const wayToHolders = await lossyRedis('holders');
const shared = await startPlatform({
  ...FAST_PATH.env,
  REDIS_URL: wayToCallers.urlOf(redis.url),
  TEMPORAL_ADDRESS: temporal.address,
  QUEUE_WAIT_MS: '120000',
});
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
    env: {
      REDIS_URL: wayToHolders.urlOf(redis.url),
      DATABASE_URL: wayToDatabase.urlOf(shared.database.url),
    },
  });

interface Forwarded {
  agent: RawAgent;
  clientMessageId: string;
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
    for (const step of STEPS) this.#agents.set(step, await this.#join(holder, step));
    await this.#untilForwarded(holder);
    await this.#send('sent');
    this.#held = dispatched(this.at.sent.agent, await this.at.sent.agent.nextOfType('dispatch'));
    await this.#send('answered');
    await this.#answerBehindLock();
    lost.callers.add('dispatch_taken').add('dispatch_ended');
    await this.#send('recorded');
    await until(async () => (await this.statesOf('recorded'))[0] === 'completed', { what: 'the recorded end' });
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

  async statesOf(step: Step): Promise<string[]> {
    const rows = await shared.database.query<{ state: string }>(
      'SELECT state FROM dispatches WHERE message_id = $1 ORDER BY created_at',
      [this.at[step].messageId],
    );
    return rows.map(({ state }) => state);
  }

  /** The end of each message, as another process gives it, its dispatches, and how often it reached its agent. */
  async outcomes(witness: TestPlatform): Promise<Record<Step, unknown>> {
    const outcomes = {} as Record<Step, unknown>;
    for (const step of STEPS) {
      const { messageId, agent } = this.at[step];
      const ended = await until(
        async () => {
          const message = await witness.client.message(messageId);
          return message.completed_at ? message : undefined;
        },
        { timeoutMs: 90_000, what: `the end of the dispatch that was ${step}` },
      );
      const reached = agent.received.filter((frame) => JSON.stringify(frame).includes(messageId));
      outcomes[step] = [ended.error?.code ?? ended.state, await this.statesOf(step), reached.length];
    }
    return outcomes;
  }

  #typeOf = (step: Step) => `${this.#prefix}-${step}`;

  #join(holder: TestPlatform, step: Step): Promise<RawAgent> {
    const waits = step === 'sent' || step === 'answered';
    const behaviour: Behaviour | undefined = waits ? undefined : echo;
    return joinAgent(holder, { instanceId: this.#typeOf(step), agentType: this.#typeOf(step) }, behaviour);
  }

  /** The first messages may come before the processes have found each other. */
  async #untilForwarded(holder: TestPlatform): Promise<void> {
    const type = `${this.#prefix}-warm`;
    await joinAgent(holder, { instanceId: type, agentType: type }, echo);
    await until(async () => {
      const { id } = await this.#caller.client.send('warm', { metadata: { agent_type: type } });
      return temporal.about(id).length === 0;
    });
  }

  /** Resolves when its dispatch is on the record. */
  async #send(step: Step, text = 'go'): Promise<void> {
    const agent = this.#agents.get(step);
    if (!agent) throw new Error(`no agent for ${step}`);
    const clientMessageId = crypto.randomUUID();
    const options = { messageId: clientMessageId, metadata: { agent_type: this.#typeOf(step) } };
    const answer = this.#caller.client.send(text, options);
    answer.catch(() => undefined); // the process that owes it may die
    const messageId = await until(
      async () => {
        const [row] = await shared.database.query<{ message_id: string }>(
          'SELECT message_id FROM dispatches WHERE agent_type = $1',
          [this.#typeOf(step)],
        );
        return row?.message_id;
      },
      { what: `the dispatch that is to be ${step}` },
    );
    this.at[step] = { agent, clientMessageId, messageId, text, answer };
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

test('the process that took the calls dies: each is done once, and a repeat at another process gives it', async () => {
  const [holder, dying] = [await startHolder(), await shared.startPeer()];
  const dispatches = new Dispatches(dying, 'bereft');
  await dispatches.bringTo(holder);
  await dying.kill9();
  await dispatches.letGo(false);
  expect(await dispatches.outcomes(caller)).toEqual({
    sent: ['completed', ['completed'], 1],
    answered: ['completed', ['completed'], 1],
    recorded: ['completed', ['completed'], 1],
    read: ['completed', ['completed'], 1],
    forwarded: ['completed', ['released', 'completed'], 1],
  });
  for (const [step, { clientMessageId, messageId, text }] of Object.entries(dispatches.at)) {
    const options = { messageId: clientMessageId, metadata: { agent_type: `bereft-${step}` } };
    const repeated = await caller.client.send(text, options);
    expect(repeated).toMatchObject({ id: messageId, status: { state: 'completed' } });
  }
});

test('the node that holds the sockets dies: what may have reached an agent is lost, what is recorded is answered', async () => {
  const dying = await startHolder();
  const idle = await joinAgent(dying, { instanceId: 'orphan-next', agentType: 'orphan-next' });
  const dispatches = new Dispatches(caller, 'orphan');
  await dispatches.bringTo(dying);
  await dying.kill9();
  await dispatches.letGo(true);
  // Its agents are still on the routes, and Redis says that nobody listens.
  const next = caller.client.send('go', { blocking: false, metadata: { agent_type: 'orphan-next' } });
  const lostAfter = (deliveries: number) => ['AGENT_DISCONNECTED', ['lost'], deliveries];
  expect(await dispatches.outcomes(caller)).toEqual({
    sent: lostAfter(1),
    answered: lostAfter(1),
    recorded: ['completed', ['completed'], 1],
    read: lostAfter(0),
    forwarded: lostAfter(0),
  });
  for (const [step, { answer }] of Object.entries(dispatches.at))
    expect((await answer).status.state, step).toBe(step === 'recorded' ? 'completed' : 'failed');
  const holder = await startHolder();
  await joinAgent(holder, { instanceId: 'orphan-next', agentType: 'orphan-next' }, echo);
  await caller.client.untilState((await next).id, 'completed', 90_000);
  expect(idle.received.filter(({ type }) => type === 'dispatch')).toEqual([]);
}, 180_000);

test('Redis goes: each is done once, and its caller is answered', async () => {
  const holder = await startHolder();
  const dispatches = new Dispatches(caller, 'severed');
  await dispatches.bringTo(holder);
  wayToCallers.shut();
  wayToHolders.shut();
  await dispatches.letGo(false);
  expect(await dispatches.outcomes(caller)).toEqual({
    sent: ['completed', ['completed'], 1],
    answered: ['completed', ['completed'], 1],
    recorded: ['completed', ['completed'], 1],
    // Nothing is heard of the one that the node is reading: its workflow may ask before the node has it.
    read: ['completed', expect.toBeOneOf([['completed'], ['released', 'completed']]), 1],
    forwarded: ['completed', ['released', 'completed'], 1],
  });
  for (const [step, { answer }] of Object.entries(dispatches.at))
    expect((await answer).status.state, step).toBe('completed');
});
