import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createQueues } from '../../../messages/dispatch/queues.js';
import { validStart } from '../../../messages/dispatch/taker.js';
import { takeStep } from '../../../messages/supervise/next-step.js';
import { newId } from '../../../runtime/ids.js';
import { freshDatabase } from '../../setup/database.js';
import { MESH, RecordFixture, type Sent } from '../../setup/record-fixture.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
const queues = createQueues(fixture.core);
beforeEach(() => fixture.reset());

const WORKER = { agent_type: 'worker' };
const ids = (count: number) => Array.from({ length: count }, () => newId('dsp'));
/** What an agent of this node takes. */
const take = (instance_id: string, atMost = 16, by = { mesh_id: MESH, epoch: 1 as number | null, as_open: false }) =>
  queues.take({ tenant_id: fixture.tenantId, instance_id }, by, ids(atMost));
const taken = async (instance_id: string, atMost?: number) =>
  (await take(instance_id, atMost)).map(({ message_id }) => message_id);
/** Messages for which nobody has room, the oldest first. */
async function queued(...wishes: Parameters<typeof fixture.send>[0][]): Promise<Sent[]> {
  const sent: Sent[] = [];
  for (const wish of wishes) sent.push(await fixture.send(wish));
  expect(sent.map(({ verdict }) => verdict)).toEqual(sent.map(() => 'queued'));
  return sent;
}
const of = (sent: Sent[], ...places: number[]) => places.map((place) => sent[place]?.message_id);

test('an agent with room takes the oldest that it can do, as many as it may have', async () => {
  await fixture.agent('a', { skills: ['sums'], status: 'offline', mesh_id: null, max_concurrent_sessions: 3 });
  await fixture.agent('b', { status: 'offline', mesh_id: null });
  const sent = await queued(WORKER, { instance_id: 'b' }, { skill_id: 'sums' }, { instance_id: 'a' }, WORKER);
  expect(await taken('a')).toEqual([]);
  await fixture.setAgents(`status = 'available', mesh_id = '${MESH}'`);
  expect(await taken('a', 2)).toEqual(of(sent, 0, 2));
  expect(await taken('a')).toEqual(of(sent, 3));
  expect(await taken('a')).toEqual([]);
  expect(await taken('b')).toEqual(of(sent, 1));
  expect(await fixture.load('a')).toBe(3);
});

test('a session that reserves its place and has no agent yet takes room', async () => {
  await fixture.agent('a', { status: 'offline', mesh_id: null, max_concurrent_sessions: 1 });
  const wish = { idle_timeout_seconds: 0, reserve: true };
  const open = async () => (await fixture.sessions.init(fixture.caller, wish)).session.session_id;
  const first = await fixture.queue(WORKER, await open());
  const second = await fixture.queue(WORKER, await open());
  await fixture.setAgents(`status = 'available', mesh_id = '${MESH}'`);
  expect([await taken('a'), await fixture.load('a')]).toEqual([[first.message_id], 1]);
  await fixture.answer(first);
  expect(await taken('a')).toEqual([]);
  await fixture.sessions.close(fixture.caller, first.session_id);
  expect(await taken('a')).toEqual([second.message_id]);
});

test('an agent takes no more messages than it may have at once', async () => {
  await fixture.agent('a', { status: 'offline', mesh_id: null, max_concurrent_sessions: 0, max_concurrent_tasks: 2 });
  const sent = await queued(WORKER, WORKER, WORKER);
  await fixture.setAgents(`status = 'available', mesh_id = '${MESH}'`);
  const queue = { tenant_id: fixture.tenantId, queue: '/worker/' };
  expect(await taken('a')).toEqual(of(sent, 0, 1));
  expect([await taken('a'), await queues.agentsToFill(queue)]).toEqual([[], []]);
  await fixture.setAgents('max_concurrent_tasks = 3');
  expect(await queues.agentsToFill(queue)).toHaveLength(1);
  expect(await taken('a')).toEqual(of(sent, 2));
});

test('a look finds agents of every node in time, whichever are the least loaded: a node that is gone takes nothing', async () => {
  const here = ['w5', 'w6', 'w7', 'w8'];
  for (const instance of ['w1', 'w2', 'w3', 'w4', ...here])
    await fixture.agent(instance, { mesh_id: here.includes(instance) ? MESH : 'mesh_gone' });
  const queue = { tenant_id: fixture.tenantId, queue: '/worker/' };
  const nodes = async () => (await queues.agentsToFill(queue)).map(({ mesh_id }) => mesh_id);
  const seen = await until(async () => [await nodes()].find((found) => found.includes(MESH)), {
    what: 'an agent of this node',
  });
  expect(seen).toHaveLength(4);
});

test('an operator’s drain keeps an agent from taking what waits', async () => {
  await fixture.agent('a', { status: 'offline', mesh_id: null });
  const sent = await queued(WORKER);
  await fixture.setAgents(`status = 'available', mesh_id = '${MESH}', drained = true`);
  expect(await taken('a')).toEqual([]);
  await fixture.setAgents('drained = false');
  expect(await taken('a')).toEqual(of(sent, 0));
});

test('what is taken is sent by this node, and its session is the agent’s from then on', async () => {
  await fixture.agent('a', { status: 'offline', mesh_id: null });
  const [sent] = (await queued({ ...WORKER })) as [Sent];
  await fixture.setAgents(`status = 'available', mesh_id = '${MESH}'`);
  const [open] = await take('a');
  expect(open).toMatchObject({
    ...{ message_id: sent.message_id, mesh_id: MESH, epoch: 1, attempt: 1, instance_id: 'a' },
  });
  expect(open).toEqual(
    await fixture.dispatches.find({ ...sent, dispatch_id: open?.dispatch_id ?? '' }).then((found) => ({
      ...found,
      ...(open?.queue_start && { queue_start: open.queue_start }),
      payload: { ...found?.payload, deadline_ms: open?.payload.deadline_ms },
    })),
  );
  const session = 'SELECT instance_id, agent_type FROM sessions WHERE session_id = $1';
  expect(await database.query(session, [sent.session_id])).toEqual([{ instance_id: 'a', agent_type: 'worker' }]);
  const types = await database.column('SELECT event_type FROM events WHERE message_id = $1 ORDER BY event_id', [
    sent.message_id,
  ]);
  expect(types).toEqual(['message.received', 'dispatch.sent']);
});

test('a human’s answer goes before new work, however old and however much that is', async () => {
  await fixture.agent('a');
  const asking = await fixture.send(WORKER);
  await fixture.answer(asking, 'input-required');
  await fixture.send(WORKER);
  const older = await queued(...Array.from({ length: 12 }, () => ({ instance_id: 'a' })));
  await database.query(
    "UPDATE running_messages SET created_at = created_at - interval '1 h' WHERE message_id = ANY ($1)",
    [older.map(({ message_id }) => message_id)],
  );
  await fixture.confirm(asking);
  expect(await fixture.kind(asking)).toBe('room');
  await fixture.setAgents('max_concurrent_sessions = 2');
  expect(await taken('a', 1)).toEqual([asking.message_id]);
  await fixture.setAgents('max_concurrent_sessions = 3');
  expect(await taken('a')).toEqual(of(older, 0));
});

test('without room it takes messages of the sessions that it has', async () => {
  await fixture.agent('a');
  const first = await fixture.send(WORKER);
  const other = await queued(WORKER);
  await database.query("UPDATE agents SET status = 'busy' WHERE tenant_id = $1", [fixture.tenantId]);
  const second = await fixture.queue({}, first.session_id);
  await database.query("UPDATE running_messages SET queue = 'a//' WHERE message_id = $1", [second.message_id]);
  expect(await taken('a')).toEqual([second.message_id]);
  expect(await taken('a')).toEqual([]);
  expect(await fixture.load('a')).toBe(1);
  expect(other).toHaveLength(1);
});

test('further messages of a session with a place on its agent go on, whoever waits for that one', async () => {
  await fixture.agent('a');
  const first = await fixture.send(WORKER);
  await queued({ instance_id: 'a' });
  const further = await fixture.send({}, { contextId: first.session_id });
  expect(further).toMatchObject({ verdict: 'dispatched', to: 'a' });
  await fixture.setAgents("mesh_id = 'mesh_2'");
  expect((await fixture.send({}, { contextId: first.session_id })).verdict).toBe('queued');
});

test('a reserved place that was given up while the session paused is told anew when a message is taken', async () => {
  await fixture.agent('a');
  const contextId = await fixture.open();
  await fixture.answer(await fixture.send({}, { contextId }), 'input-required');
  await fixture.send(WORKER);
  const further = await fixture.send({}, { contextId });
  await fixture.setAgents('max_concurrent_sessions = 2');
  const loads = `SELECT (payload ->> 'current_sessions')::integer AS load FROM events
    WHERE tenant_id = $1 AND event_type = 'agent.capacity_changed' ORDER BY event_id`;
  expect(await database.column(loads, [fixture.tenantId])).toEqual([1, 0]);
  expect(await taken('a')).toEqual([further.message_id]);
  expect(await database.column(loads, [fixture.tenantId])).toEqual([1, 0, 2]);
});

test.each([
  ['of another node', { mesh_id: 'mesh_2', epoch: 1, as_open: false }],
  ['of an earlier connection', { mesh_id: MESH, epoch: 0, as_open: false }],
  ['that has no connection here', { mesh_id: MESH, epoch: null, as_open: false }],
])('a node takes nothing for an agent %s', async (_what, by) => {
  await fixture.agent('a', { status: 'busy' });
  await queued(WORKER);
  await fixture.setAgents("status = 'available'");
  expect(await take('a', 16, by)).toEqual([]);
  expect(await taken('a')).toHaveLength(1);
});

test('a session or message that another transaction has is passed over', async () => {
  await fixture.agent('a', { status: 'busy', max_concurrent_sessions: 4 });
  const sent = await queued(WORKER, WORKER);
  await fixture.setAgents("status = 'available'");
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [sent[0]?.session_id]);
  expect(await taken('a')).toEqual(of(sent, 1));
  await lock.release();
  expect(await taken('a')).toEqual(of(sent, 0));
});

test('of many nodes that take at once none takes what another has, and none more than there is room for', async () => {
  await fixture.agent('a', { status: 'busy', max_concurrent_sessions: 5 });
  await queued(...Array.from({ length: 12 }, () => ({ instance_id: 'a' })));
  await fixture.setAgents("status = 'available'");
  const all = (await Promise.all(Array.from({ length: 8 }, () => taken('a', 3)))).flat();
  expect(new Set(all).size).toBe(all.length);
  expect(all).toHaveLength(5);
});

/** The agent's result, and what it gets right behind it. */
async function answerAndTake(message: Sent, queueFrom?: string) {
  const open = await fixture.dispatched(message);
  const start = queueFrom === undefined ? {} : { queue_start: { queue_from: queueFrom, lookedAtAllMs: 7 } };
  const next = { mesh_id: MESH, dispatch_id: newId('dsp'), ...start };
  const end = await fixture.dispatches.end(open, { state: 'completed', artifacts: [] }, open.epoch, next);
  const opened = typeof end?.next === 'object' ? end.next : undefined;
  return {
    state: end?.message?.state,
    next: opened?.message_id ?? end?.next,
    ...(queueFrom !== undefined && { start: opened?.queue_start }),
  };
}

test('a result and the next message are one transaction; where the room is held the next one is to be taken later', async () => {
  await fixture.agent('a');
  const first = await fixture.send(WORKER);
  const sent = await queued(WORKER, WORKER);
  expect(await answerAndTake(first)).toEqual({ state: 'completed', next: sent[0]?.message_id });
  const room = `SELECT pg_advisory_xact_lock(hashtextextended('capacity:' || $1 || ':a', 0))`;
  const lock = await RowLock.on(database.url, room, [fixture.tenantId]);
  expect(await answerAndTake(sent[0] as Sent)).toEqual({ state: 'completed', next: 'again' });
  await lock.release();
  expect(await taken('a')).toEqual(of(sent, 1));
  expect(await answerAndTake(sent[1] as Sent)).toEqual({ state: 'completed', next: undefined });
});

test('the take behind a result may begin in the midst of shared queues, and then still finds what is older', async () => {
  await fixture.agent('a');
  const first = await fixture.send(WORKER);
  const sent = await queued(WORKER, WORKER, WORKER, WORKER, { instance_id: 'a' });
  await database.query("UPDATE running_messages SET created_at = created_at - interval '1 h' WHERE message_id = $1", [
    sent[4]?.message_id,
  ]);
  const query = 'SELECT message_id, to_json(created_at) AS at FROM running_messages WHERE tenant_id = $1';
  const rows = await database.query<{ message_id: string; at: string }>(query, [fixture.tenantId]);
  const at = (index: number) => rows.find(({ message_id }) => message_id === sent[index]?.message_id)?.at;
  expect((await answerAndTake(first, at(2))).next).toBe(sent[4]?.message_id); // from its own queue
  const second = await answerAndTake(sent[4] as Sent, at(1));
  expect(second).toMatchObject({ next: sent[1]?.message_id, start: { queue_from: at(1), lookedAtAllMs: 7 } });
  await database.query(`UPDATE running_messages SET resolution = '{}' WHERE message_id = $1`, [sent[0]?.message_id]);
  expect((await answerAndTake(sent[1] as Sent, at(3))).next).toBe(sent[0]?.message_id); // a person's answer
  expect((await answerAndTake(sent[0] as Sent, at(3))).next).toBe(sent[3]?.message_id);
  expect((await answerAndTake(sent[3] as Sent, at(3))).next).toBe(sent[2]?.message_id);
});

test.each([
  [4_900, true],
  [5_100, false],
])('%i ms after a look at all messages a take may begin where that found the oldest: %s', (ms, isValid) => {
  const queue_start = { queue_from: '2026-01-01T00:00:00Z', lookedAtAllMs: performance.now() - ms };
  expect(validStart({ queue_start })).toEqual(isValid ? { queue_start } : {});
});

test('the queues that are not empty are found, and agents with room for them', async () => {
  await fixture.agent('a', { status: 'busy', skills: ['sums'] });
  await fixture.agent('other', { status: 'busy', mesh_id: 'mesh_2' });
  await queued(WORKER, WORKER, { skill_id: 'sums' }, { instance_id: 'a' });
  const { tenantId: tenant_id } = fixture;
  expect(await queues.tenantsWithQueues()).toContain(tenant_id);
  const behind = async (after: string, atMost: number) =>
    (await queues.queuesNotEmpty(tenant_id, after, atMost)).map(({ queue }) => queue);
  expect(await behind('', 100)).toEqual(['//sums', '/worker/', 'a//']);
  expect(await behind('//sums', 1)).toEqual(['/worker/']);
  expect(await behind('a//', 100)).toEqual([]);
  expect(await queues.agentsToFill({ tenant_id, queue: '/worker/' })).toEqual([]);
  await fixture.setAgents("status = 'available'");
  for (const queue of ['//sums', '/worker/', 'a//'])
    expect(await queues.agentsToFill({ tenant_id, queue })).toContainEqual({ instance_id: 'a', mesh_id: MESH });
});

test('an end that takes nothing tells whether something waits for its agent', async () => {
  await fixture.agent('a');
  const ended = async (sent: Sent) => {
    const open = await fixture.dispatched(sent);
    return fixture.dispatches.end(open, { state: 'completed', artifacts: [] }, open.epoch);
  };
  const [first, second] = [await fixture.send(WORKER), await fixture.send(WORKER)];
  expect(await ended(first)).toMatchObject({ state: 'completed', next: 'again' });
  expect((await ended(second))?.next).toBeUndefined();
});

test('a message whose opening raises is set aside while those behind it are taken, and fails after ten times', async () => {
  await fixture.agent('a', { max_concurrent_sessions: 0, status: 'busy' });
  const [broken, other] = (await queued(WORKER, WORKER)) as [Sent, Sent];
  await database.query(`
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no such dispatch'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON dispatches FOR EACH ROW WHEN (NEW.message_id = '${broken.message_id}') EXECUTE FUNCTION public.refuse()`);
  onTestFinished(() => database.query('DROP TRIGGER refuse ON dispatches; DROP FUNCTION public.refuse').then(() => {}));
  await fixture.setAgents("status = 'available'");
  expect(await taken('a')).toEqual([other.message_id]);
  const isDue =
    "SELECT wake_requested_at <= now() - interval '10 s' AND queue IS NULL FROM running_messages WHERE message_id = $1";
  expect(await database.value(isDue, [broken.message_id])).toBe(true);
  const step = () => takeStep(fixture.core, broken, 'process'); // as the sweeper does
  for (let time = 2; time <= 10; time += 1) {
    expect(await step()).toMatchObject({ queue: '/worker/' });
    expect(await taken('a')).toEqual([]);
  }
  expect((await step()).step).toMatchObject({ kind: 'done', state: 'failed', error: { code: 'INTERNAL' } });
});
