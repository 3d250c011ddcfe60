import { GetEventsResponse } from '../../../../contracts/api/telemetry.js';
import { until } from '../../../setup/until.js';
import { asking, comeBack } from './actions.js';
import { decide, request, stopSession } from './calls.js';
import { arrivalDefects, orderDefects, permittedEnds } from './rules.js';
import type { ScriptMessage, World } from './world.js';

/** For so long an agent with room may sit idle while a message waits that it could take. */
const IDLE_MS = 5_000;
/** Enough for what a killed node leaves behind. */
const END_MS = 90_000;
const EVENT_OF = { completed: 'message.completed', failed: 'message.error', canceled: 'message.canceled' } as const;

/** What callers, agents and the record must not show at any moment. */
export async function expectNoDefect(world: World): Promise<void> {
  const found = [...world.defects];
  for (const message of world.messages)
    found.push(...arrivalDefects(world.factsOf(message)).map((defect) => `${message.key}: ${defect}`));
  if (found.length > 0) throw new Error(found.join('\n'));
}

/** Every message that an agent has room for is taken soon, although nobody answers, leaves or comes. */
async function expectNoIdleRoom(world: World): Promise<void> {
  const since = new Map<ScriptMessage, number>();
  const isStill = async () => {
    await world.refresh();
    const now = performance.now();
    const takeable = world.takeable();
    const late = [...since].find(
      ([message, at]) =>
        now - at > IDLE_MS && (takeable.includes(message) || message.end?.how === 'failed TARGET_UNAVAILABLE'),
    );
    if (late) world.defects.push(`${late[0].key} waited for ${Math.round(now - late[1])} ms while an agent had room`);
    for (const message of since.keys()) if (!takeable.includes(message)) since.delete(message);
    for (const message of takeable) if (!since.has(message)) since.set(message, now);
    return late || takeable.length === 0;
  };
  await until(isStill, { what: 'work for all agents with room', timeoutMs: END_MS });
}

/** Agents answer what they keep, one after the other: each time the next message is taken. */
async function expectNextTaken(world: World): Promise<void> {
  await expectNoIdleRoom(world);
  for (let held = world.held[0]; held; held = world.held[0]) {
    world.answer(held.arrival, 'result');
    await expectNoIdleRoom(world);
  }
}

/** All agents are here and answer, and people too, until every message has ended. */
async function endAll(world: World): Promise<void> {
  world.isFinishing = true;
  await Promise.all(world.agents.map((agent) => comeBack(world, agent)));
  for (const agent of world.agents.filter(({ isDraining }) => isDraining))
    await world.persist(() => agent.report('available'));
  const step = async () => {
    for (const { arrival } of world.held) world.answer(arrival, 'result');
    for (const message of world.messages.filter(({ isUnknown }) => isUnknown)) await request(world, message, false, 0);
    for (const message of asking(world)) await decide(world, message, 'confirmed', 0);
    await world.refresh();
    for (const session of world.sessions.filter((one) => one.isOrdered && !one.isClosed))
      if (!world.running.some((message) => message.session === session)) await stopSession(world, session, 'close', 0);
    return world.running.length === 0;
  };
  await until(step, { what: 'the end of all messages', timeoutMs: END_MS }).catch((error) => {
    const open = world.running.map(({ key, id, arrivals }) => `${key} (${id}, ${JSON.stringify(arrivals)})`);
    throw new Error(`not over: ${open.join(', ')}`, { cause: error });
  });
  await Promise.all(world.calls);
}

/** A tenant's events of a type, by message. */
async function eventCounts(world: World, type: string): Promise<Map<unknown, number>> {
  const { events, total_pages } = await world.persist(() =>
    world.client.ok('/telemetry/get_events', { type, page_size: 100 }, GetEventsResponse),
  );
  if (total_pages > 1) throw new Error('more events than messages');
  const ids = events.map(({ event }) => (event as { message_id?: string }).message_id);
  return new Map(ids.map((id) => [id, ids.filter((other) => other === id).length]));
}

async function expectOneEvent(world: World): Promise<void> {
  for (const [state, type] of Object.entries(EVENT_OF)) {
    const counts = await eventCounts(world, type);
    for (const { id, end, key } of world.messages) {
      const expected = end?.how.startsWith(state) ? 1 : 0;
      const count = counts.get(id) ?? 0;
      if (id !== undefined && count !== expected)
        world.defects.push(`${key} has ${count} events ${type}, and is ${end?.how}`);
    }
  }
}

function expectPermittedEnds(world: World): void {
  for (const message of world.messages.filter(({ isRefused }) => !isRefused)) {
    const ends = permittedEnds(world.factsOf(message));
    const { end, key, answeredState, arrivals, decided } = message;
    const questions = arrivals.filter(({ answer }) => answer?.how === 'question').length;
    if (decided > questions) world.defects.push(`${key} was decided ${decided} times, and asked ${questions} times`);
    if (end && !ends.has(end.how))
      world.defects.push(`${key} ended as ${end.how}, and may as ${[...ends].join(', ') || 'nothing yet'}`);
    if (answeredState && !end?.how.startsWith(answeredState))
      world.defects.push(`${key} was answered as ${answeredState}, and is ${end?.how}`);
  }
}

function expectOrder(world: World): void {
  for (const session of world.sessions.filter(({ isOrdered }) => isOrdered)) {
    const turns = world.ofSession(session).map((message) => {
      const { key: name, sentAt, acceptedAt } = message;
      return { name, sentAt, acceptedAt, arrivals: world.factsOf(message).arrivals };
    });
    world.defects.push(...orderDefects(turns));
  }
}

/** Ids of messages of the tenants before. */
const ofOthers: string[] = [];

async function expectOwnOnly(world: World): Promise<void> {
  for (const message_id of ofOthers.splice(0)) {
    const status = await world.persist(async () => {
      const answer = await world.client.post('/messages/get_by_id', { message_id });
      if (answer.status === 503) throw new Error('answered 503'); // another script has cut the database
      return answer.status;
    });
    if (status !== 404) world.defects.push(`another tenant's ${message_id} answered ${status}`);
  }
  ofOthers.push(...world.messages.flatMap(({ id }) => id ?? []).slice(0, 1));
}

/** The end of a script: everything ends, and as it may. */
export async function finish(world: World): Promise<void> {
  await world.nodes.whole();
  await expectNextTaken(world);
  await endAll(world);
  const records = await world.refresh();
  const accepted = world.messages.filter(({ isRefused }) => !isRefused);
  if (records.length !== accepted.length) world.defects.push(`${accepted.length} messages are ${records.length} tasks`);
  expectPermittedEnds(world);
  expectOrder(world);
  await expectOneEvent(world);
  await expectOwnOnly(world);
  await Promise.all(world.agents.map((agent) => agent.leave()));
  await expectNoDefect(world);
}
