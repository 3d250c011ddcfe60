import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { LIMITS } from '../../contracts/limits.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture, type Sent } from '../setup/record-fixture.js';

const QUEUE_WAIT_MS = 30_000;
const DEADLINE_MS = LIMITS.deadlineMsDefault;
const database = await freshDatabase();
const fixture = new RecordFixture(database, { limits: { queueWaitMs: QUEUE_WAIT_MS } });
const { dispatches } = fixture;
beforeEach(async () => {
  await fixture.reset();
  await fixture.agent('x');
});

const errorOf = async ({ message_id }: Sent) => (await fixture.gateway.get(fixture.caller, message_id)).error?.code;
const deadlineOf = async (message: Sent) => (await fixture.dispatched(message)).deadline_at?.getTime();

test.each([
  ['a node that died', 'OWNER_LOST', 2 * DEADLINE_MS, 'result'],
  ['an agent that was not reached', 'CONNECT_FAILED', DEADLINE_MS / 2, 'result'],
  ['an agent that was not reached for too long', 'CONNECT_FAILED', 11 * DEADLINE_MS, 'done'],
  ['nodes that die again and again', 'OWNER_LOST', 11 * DEADLINE_MS, 'done'],
])('while an agent is free, a message that comes back from %s is routed or given up', async (_, reason, ms, kind) => {
  const message = await fixture.queue();
  const { dispatch_id } = await fixture.dispatched(message);
  await dispatches.release({ ...message, dispatch_id }, reason, { nothingSent: true });
  expect(await fixture.kind(message, ms)).toBe(kind);
});

/** A message that waits: its agent is full, and from a time on offline. */
async function waits(queue_wait_ms?: number): Promise<Sent> {
  await fixture.send();
  const message = await fixture.queue({ ...(queue_wait_ms !== undefined && { queue_wait_ms }) });
  expect(await fixture.kind(message)).toBe('room');
  return message;
}

test.each([
  ['one is online: its deadline', undefined, 'available', DEADLINE_MS],
  ['none is online', undefined, 'offline', QUEUE_WAIT_MS],
  ['one is online, as long as it says', 5_000, 'available', 5_000],
  ['none is online, as long as it says', 90_000, 'offline', 90_000],
])('a message waits for an agent, while %s', async (_, given, status, ms) => {
  const message = await waits(given);
  await fixture.setAgents(`status = '${status}'`);
  expect(await fixture.kind(message, 10)).toBe('room');
  expect(await fixture.kind(message, ms - 4_000)).toBe('room');
  expect(await fixture.look(message, ms + 100)).toMatchObject({ kind: 'done', state: 'failed' });
  expect(await errorOf(message)).toBe('TARGET_UNAVAILABLE');
});

test('the log names the requested type of a message that nobody took', async () => {
  const warn = vi.spyOn(fixture.core.log, 'warn');
  onTestFinished(() => warn.mockRestore());
  const message = await waits();
  await fixture.setAgents("status = 'offline'");
  await fixture.kind(message, 10);
  expect(await fixture.kind(message, QUEUE_WAIT_MS + 100)).toBe('done');
  const fields = expect.objectContaining({ code: 'TARGET_UNAVAILABLE', agent_type: 'worker', instance_id: null });
  expect(warn.mock.calls).toEqual([[fields, 'message failed']]);
});

test('a message says what it waits for, and how many come first', async () => {
  const waitsFor = async ({ message_id }: Sent) => (await fixture.gateway.get(fixture.caller, message_id)).waits_for;
  const busy = await fixture.send();
  expect(await waitsFor(busy)).toBeUndefined();
  const [first, second, named] = [await fixture.send(), await fixture.send(), await fixture.send({ instance_id: 'x' })];
  const since = expect.any(String);
  const room = { kind: 'room', target: { agent_type: 'worker' }, since, online: true };
  expect(await waitsFor(first)).toEqual({ ...room, ahead: 0 });
  expect(await waitsFor(second)).toEqual({ ...room, ahead: 1 });
  expect(await waitsFor(named)).toEqual({ ...room, target: { instance_id: 'x' }, ahead: 0 });
  await fixture.setAgents("status = 'offline'");
  expect(await waitsFor(second)).toMatchObject({ kind: 'agent', ahead: 1, online: false });
  await fixture.setAgents("status = 'available'");
  await fixture.answer(busy, 'input-required');
  expect(await waitsFor(busy)).toEqual({ kind: 'person', since });
  const ordered = await fixture.open('worker', true);
  await fixture.queue({}, ordered);
  expect(await waitsFor(await fixture.queue({}, ordered))).toEqual({ kind: 'turn', since });
});

test('the time without an agent counts anew when the last one goes again', async () => {
  const message = await waits();
  await fixture.setAgents("status = 'offline'");
  await fixture.kind(message);
  await database.query("UPDATE queue_absences SET since = now() - interval '20 s'");
  await database.query("UPDATE running_messages SET unrouted_since = now() - interval '1 min'");
  expect(await fixture.kind(message)).toBe('room');
  await fixture.setAgents("status = 'available'");
  expect(await fixture.kind(message, 2 * QUEUE_WAIT_MS)).toBe('room');
  await fixture.setAgents("status = 'offline'");
  expect(await fixture.kind(message, QUEUE_WAIT_MS - 5_000)).toBe('room');
  expect(await fixture.kind(message, QUEUE_WAIT_MS + 100)).toBe('done');
});

test('a message that comes long after the last agent went waits as long as any', async () => {
  const earlier = await waits();
  await fixture.setAgents("status = 'offline'");
  await fixture.kind(earlier);
  await database.query("UPDATE queue_absences SET since = now() - interval '1 h'");
  const message = await fixture.queue();
  expect(await fixture.kind(message, QUEUE_WAIT_MS - 5_000)).toBe('room');
  expect(await fixture.kind(message, QUEUE_WAIT_MS + 100)).toBe('done');
});

const OWN_FAILURE: AnswerOrFailure = { state: 'failed', error: { code: 'AGENT_DISCONNECTED', message: 'gone' } };
const LOST: AnswerOrFailure = { ...OWN_FAILURE, is_loss: true };
/** All messages of the agent are declared as idempotent, or those to a skill. */
const declareIdempotent = (skill = '*') => {
  const extension = { uri: 'urn:agent-fleet:extensions:idempotent-skills', params: { skills: [skill] } };
  return fixture.setAgents(`agent_card = '${JSON.stringify({ capabilities: { extensions: [extension] } })}'`);
};

test('a message of an idempotent skill has ten dispatches at most, and they share its deadline', async () => {
  await declareIdempotent();
  const message = await fixture.queue();
  const deadlines = new Set<number | undefined>();
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    deadlines.add(await deadlineOf(message));
    await fixture.answer(message, LOST);
  }
  expect(await fixture.look(message)).toMatchObject({ kind: 'done', state: 'failed' });
  expect(await errorOf(message)).toBe('AGENT_DISCONNECTED');
  expect(deadlines.size).toBe(1);
});

test('a message that is lost is not repeated where another skill than its own is idempotent', async () => {
  await declareIdempotent('pay');
  const message = await fixture.queue();
  await fixture.answer(message, LOST);
  expect(await fixture.look(message)).toMatchObject({ kind: 'done', state: 'failed' });
  expect(await errorOf(message)).toBe('AGENT_DISCONNECTED');
});

test('an agent that reports the code of a loss has answered, and gets the message no more', async () => {
  await declareIdempotent();
  const message = await fixture.queue();
  const seen: string[] = [];
  fixture.core.bus.subscribe(fixture.tenantId, message.message_id, 0, ({ event }) => seen.push(event.kind));
  await fixture.answer(message, OWN_FAILURE);
  expect(await fixture.look(message)).toMatchObject({ kind: 'done', state: 'failed' });
  expect(await errorOf(message)).toBe('AGENT_DISCONNECTED');
  expect(seen).not.toContain('restarted');
});

test('a question to a human gives it its whole time again', async () => {
  await declareIdempotent();
  const message = await fixture.queue();
  const first = await deadlineOf(message);
  await fixture.answer(message, LOST);
  expect(await deadlineOf(message)).toBe(first);
  await fixture.answer(message, 'input-required');
  await fixture.confirm(message);
  expect(await deadlineOf(message)).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY);
});

test('what is lost after its deadline is not repeated, and nobody is waited for beyond it', async () => {
  await declareIdempotent();
  const late = await fixture.queue();
  await fixture.dispatched(late);
  await database.query("UPDATE dispatches SET deadline_at = now() - interval '1 s'");
  await fixture.answer(late, LOST);
  expect(await errorOf(late)).toBe('AGENT_DISCONNECTED');

  const waiting = await fixture.queue();
  await fixture.answer(waiting, LOST);
  await fixture.setAgents("status = 'offline'");
  await database.query("UPDATE running_messages SET repeat_until = now() + interval '4 s'");
  expect((await fixture.look(waiting))?.wait_ms).toBeLessThanOrEqual(4_000);
  await database.query('UPDATE running_messages SET repeat_until = now()');
  expect(await fixture.look(waiting)).toMatchObject({ kind: 'done', state: 'failed' });
  expect(await errorOf(waiting)).toBe('DEADLINE_EXCEEDED');
});
