import { setTimeout as pause } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { ResolveResponse } from '../../../contracts/api/messages.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { createPlan, step, untilPlan, untilStep } from '../../plans/plan-fixture.js';
import { type Behaviour, type Dispatched, echo } from '../../setup/agent.js';
import { freshDatabase } from '../../setup/database.js';
import type { ApiClient } from '../../setup/platform/api-client.js';
import { JournalingAgent, joinAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { empty, nextRelease, previousRelease } from '../../setup/platform/releases.js';
import { assembled, StreamReader } from '../../setup/stream-reader.js';
import { until } from '../../setup/until.js';
import { byText, to } from '../../system/fixture.js';
import { EventFollower } from '../../telemetry/event-follower.js';

const redis = await redisServer();
const [previous, next] = await Promise.all([previousRelease(inject('runDir')), nextRelease(inject('runDir'))]);
const database = await freshDatabase();
await empty(database.url);
const settings = { REDIS_URL: redis.url, QUEUE_WAIT_MS: '120000' };
const shared = await startPlatform(settings, { start: previous.start, database });
const old = shared.platform;
/** Where agents connect when their socket is lost. */
let home = old;
const fleet = {
  get client() {
    return home.client;
  },
  devJson: () => home.devJson(),
};

/** What an agent has in hand until the test says so, by its text. */
const held = new Map<string, Dispatched>();

/** Callers that send one message after the other to the nodes of the moment, each until it is acknowledged. */
class Traffic {
  /** The tasks by the messageIds. */
  readonly acknowledged = new Map<string, string>();
  nodes: ApiClient[] = [old.client];
  #isOver = false;
  readonly #callers = [1, 2, 3].map((caller) => this.#run(`caller-${caller}`));

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }

  async more(count: number): Promise<void> {
    const before = this.acknowledged.size;
    await until(() => this.acknowledged.size >= before + count, { what: `${count} more messages` });
  }

  async #run(caller: string): Promise<void> {
    for (let number = 0; !this.#isOver; number += 1) {
      const messageId = `${caller}-${number}`;
      for (let turn = number; !this.acknowledged.has(messageId); turn += 1) {
        const node = this.nodes[turn % this.nodes.length] as ApiClient;
        const options = { ...to('worker'), messageId, blocking: number % 2 === 0 };
        const answer = await node.rpc(messageId, options).catch(() => undefined); // a node that has stopped
        if (answer?.result) this.acknowledged.set(messageId, (answer.result as Task).id);
        await pause(50);
      }
    }
  }
}

const ask = async (client: ApiClient) => (await client.send('ask', to('worker'))).id;

async function confirm(client: ApiClient, id: string): Promise<void> {
  await client.ok(`/messages/${id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
  expect((await client.untilState(id, 'completed')).assistant_output).toBe('ask: confirmed');
}

const functionSchemas = async () => (await database.column<string>('SELECT name FROM function_schemas')).sort();

test('two releases work side by side, and a rolling upgrade loses and doubles nothing', async () => {
  const join = (type: string, behaviour: Behaviour, keepsWork = false) => {
    const options = { instanceId: `${type}-1`, agentType: type, maxConcurrentSessions: 0, keepsWork };
    return new JournalingAgent(fleet, options, behaviour).start();
  };
  const hold: Behaviour = (dispatch) => void held.set(dispatch.text, dispatch);
  const agents = await Promise.all([join('worker', byText()), join('holder', hold, true)]);
  const [, holder] = agents;

  // The old release alone.
  const token = await old.client.token();
  const events = await EventFollower.open(old.baseUrl, token);
  const traffic = new Traffic();
  const [asked, askedToo] = [await ask(old.client), await ask(old.client)];
  const steps = [step('a', 'worker', 'a'), step('b', 'worker', 'b', { depends_on: ['a'], requires_approval: true })];
  const plan = await createPlan(old.client, steps);
  const waiting = await untilStep(old.client, plan.plan_id, 'b', 'input-required');
  const lasting = await old.client.send('lasting', { ...to('holder'), blocking: false });
  const message = { kind: 'message', messageId: 'spoken', role: 'user', parts: [{ kind: 'text', text: 'speak' }] };
  const stream = new StreamReader(old.client, 'message/stream', { message, ...to('holder') });
  await until(() => held.size === 2, { what: 'both dispatches' });
  held.get('speak')?.chunk(0, 'one ');
  await stream.has(2);
  await traffic.more(20);

  // Both.
  const fresh = await shared.startPeer({ start: next.start });
  expect(await functionSchemas()).toEqual([previous.functionSchema, next.functionSchema].sort());
  traffic.nodes = [old.client, fresh.client];
  await traffic.more(40);
  const askedOfNext = await ask(fresh.client);
  await confirm(fresh.client, asked);
  const newcomer = await joinAgent(fresh, { instanceId: 'newcomer-1', agentType: 'newcomer' }, echo);
  expect((await old.client.send('hello', to('newcomer'))).status.state).toBe('completed');

  // The new release alone.
  home = fresh;
  await events.leave();
  await old.stop();
  traffic.nodes = [fresh.client];
  await stream.done;
  const task = { id: (stream.events[0] as Task).id };
  const resumed = new StreamReader(fresh.client, 'tasks/resubscribe', task, stream.lastEventId);
  await until(() => holder.isOpen, { what: 'the return of the holder' });
  held.get('speak')?.chunk(1, 'two');
  held.get('speak')?.result('', { chunk_count: 2 });
  held.get('lasting')?.result('at last');
  await resumed.done;
  expect([...assembled([...stream.events, ...resumed.events]).values()]).toEqual(['one two']);
  expect((await fresh.client.untilState(lasting.id, 'completed')).assistant_output).toBe('at last');
  for (const id of [askedToo, askedOfNext]) await confirm(fresh.client, id);
  const stepMessage = waiting.steps.find(({ step_id }) => step_id === 'b')?.message_id;
  await fresh.client.ok(`/messages/${stepMessage}/resolve`, { resolution: 'approved' }, ResolveResponse);
  await untilPlan(fresh.client, plan.plan_id, 'completed');
  await traffic.more(20);
  await traffic.stop();

  const read = () =>
    database.query<{ client_message_id: string; message_id: string; state: string; error_code: string | null }>(
      "SELECT client_message_id, message_id, state, error_code FROM messages WHERE client_message_id LIKE 'caller-%'",
    );
  await until(async () => (await read()).every(({ state }) => state !== 'submitted' && state !== 'working'));
  const rows = await read();
  expect(rows.filter(({ state }) => state !== 'completed')).toEqual([]);
  expect(new Map(rows.map((row) => [row.client_message_id, row.message_id]))).toEqual(traffic.acknowledged);
  const followed = await EventFollower.open(fresh.baseUrl, token, { body: { last_event_id: events.ids.at(-1) } });
  const completed = () =>
    [...events.records, ...followed.records].flatMap(({ event_type, event }) =>
      event_type === 'message.completed' ? [event.message_id] : [],
    );
  const sent = [...traffic.acknowledged.values()];
  const allCompleted = () => {
    const found = new Set(completed());
    return sent.every((id) => found.has(id));
  };
  await until(allCompleted, { what: 'the event of each message' });
  expect(new Set(completed()).size).toBe(completed().length);
  await followed.leave();

  const given = agents.flatMap(({ journal }) => journal).filter(({ text }) => text !== 'ask');
  expect(new Set(given.map(({ message_id }) => message_id)).size).toBe(given.length);
  await Promise.all(agents.map((agent) => agent.stop()));
  newcomer.close();
}, 180_000);
