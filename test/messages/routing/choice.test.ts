import { beforeEach, describe, expect, test } from 'vitest';
import { heartbeat } from '../../../agents/agent-health.js';
import { readDetails } from '../../../sessions/session-records.js';
import { freshDatabase } from '../../setup/database.js';
import { MESH, RecordFixture } from '../../setup/record-fixture.js';

const WORKER = { agent_type: 'worker' };
const HELPER = { agent_type: 'helper' };

const database = await freshDatabase();
const fixture = new RecordFixture(database);
const { db } = fixture.core;
beforeEach(() => fixture.reset());

const join = (instance_id: string, columns: object = {}) =>
  fixture.agent(instance_id, { max_concurrent_sessions: 0, ...columns });
const beat = (instance_id: string, reported: Parameters<typeof heartbeat>[3]) =>
  db.tenant(fixture.tenantId, (tx) => heartbeat(tx, fixture.tenantId, instance_id, reported));
const setNode = (instance_id: string, status: string, mesh_id: string | null) =>
  database.query('UPDATE agents SET status = $3, mesh_id = $4 WHERE tenant_id = $1 AND instance_id = $2', [
    fixture.tenantId,
    instance_id,
    status,
    mesh_id,
  ]);
const leave = (instance_id: string) => setNode(instance_id, 'offline', null);
const comeBack = (instance_id: string) => setNode(instance_id, 'available', MESH);
const joined = async (session_id: string) =>
  (await readDetails(db, fixture.caller, session_id)).agents.map(({ instance_id, join_reason }) => [
    instance_id,
    join_reason,
  ]);

/** What `agent.capacity_changed` said of an instance, oldest first. */
const counts = (instance_id: string) =>
  database.column(
    `SELECT (payload->>'current_sessions')::int FROM events
      WHERE tenant_id = $1 AND event_type = 'agent.capacity_changed' AND payload->>'instance_id' = $2 ORDER BY event_id`,
    [fixture.tenantId, instance_id],
  );

test('a message goes to the least loaded agent of its type, and of several idle ones to the longest idle', async () => {
  for (const name of ['a', 'b']) await join(name);
  const [first, second, third] = [await fixture.send(WORKER), await fixture.send(WORKER), await fixture.send(WORKER)];
  expect([first, second, third].map(({ to }) => to)).toEqual(['a', 'b', 'a']);
  for (const sent of [first, third]) await fixture.answer(sent);
  const fourth = await fixture.send(WORKER);
  expect(fourth.to).toBe('a');
  for (const sent of [second, fourth]) await fixture.answer(sent);
  expect((await fixture.send(WORKER)).to).toBe('b');
});

describe.each([
  ['as it is accepted', true],
  ['from its queue', false],
])('%s', (_when, offers) => {
  /** A message that is with its agent. */
  async function give(wish: object, contextId?: string) {
    const sent = await fixture.send(wish, { contextId, offers });
    const { instance_id } = await fixture.dispatched(sent);
    return { sent, instance_id };
  }
  /** Who answers a message that is sent now. */
  async function answerer(wish: object, contextId?: string): Promise<string> {
    const { sent, instance_id } = await give(wish, contextId);
    await fixture.answer(sent);
    return instance_id;
  }
  const expectAnswers = async (instanceId: string, wish: object, contextId?: string) =>
    expect([await answerer(wish, contextId), await answerer(wish, contextId)]).toEqual([instanceId, instanceId]);

  describe('a message without a session', () => {
    test.each<[string, number, () => Promise<unknown>]>([
      ['is full', 1, () => give({ instance_id: 'a' })],
      [
        'has all its messages',
        0,
        () => fixture.setAgents('max_concurrent_tasks = 1').then(() => give({ instance_id: 'a' })),
      ],
      ['an operator drains', 0, () => fixture.setAgents('drained = true')],
      ['drains', 0, () => beat('a', { status: 'draining' })],
      ['reports that it is busy', 0, () => beat('a', { status: 'busy' })],
      ['reports all its sessions', 2, () => beat('a', { current_sessions: 2 })],
    ])('never goes to an agent that %s', async (_what, max_concurrent_sessions, fill) => {
      await join('a', { max_concurrent_sessions });
      await fill();
      await join('b');
      await expectAnswers('b', WORKER);
    });

    test('goes to the instance or the skill that it names, and to nobody else', async () => {
      await join('a', { skills: ['common'] });
      await join('b', { skills: ['common', 'rare'] });
      await expectAnswers('a', { instance_id: 'a' });
      await expectAnswers('b', { ...WORKER, skill_id: 'rare' });
      for (const wish of [
        { instance_id: 'a', ...HELPER },
        { ...WORKER, skill_id: 'unheard of' },
      ])
        expect(await fixture.kind(await fixture.send(wish, { offers }))).not.toBe('result');
    });
  });

  describe('a session', () => {
    test('keeps its agent, whatever the load, also against an instance that a message names', async () => {
      await join('a');
      const session = await fixture.open();
      await join('b');
      await expectAnswers('a', {}, session);
      await expectAnswers('a', { instance_id: 'b' }, session);
      expect(await joined(session)).toEqual([['a', 'init']]);
    });

    test('has one agent of each type, however many messages ask for one at once, and later ones go there', async () => {
      await join('a');
      for (const name of ['x', 'y', 'z']) await join(name, HELPER);
      const session = await fixture.open();
      const sent = await Promise.all(
        Array.from({ length: 6 }, () => fixture.send(HELPER, { contextId: session, offers })),
      );
      const takers = new Set<string>();
      for (const one of sent) takers.add((await fixture.dispatched(one)).instance_id);
      const [chosen = '', ...others] = takers;
      expect(others).toEqual([]);
      for (const one of sent) await fixture.answer(one);
      await expectAnswers(chosen, HELPER, session);
      await expectAnswers('a', {}, session);
      expect(await joined(session)).toEqual([
        ['a', 'init'],
        [chosen, 'routed'],
      ]);
    });

    test('sends messages for a type to the agent that was invited', async () => {
      await join('a');
      for (const name of ['x', 'y']) await join(name, HELPER);
      for (const [own, session] of [
        ['a', await fixture.open()],
        ['y', (await fixture.sessions.init(fixture.caller, { idle_timeout_seconds: 0 })).session.session_id],
      ] as const) {
        await fixture.sessions.invite(fixture.caller, { session_id: session, ...HELPER, instance_id: 'y' });
        await expectAnswers('y', HELPER, session);
        await expectAnswers(own, {}, session);
      }
    });

    test.each([false, true])(
      'whose agent is gone gets another of its type, and stays with it (it joined later: %s)',
      async (later) => {
        if (later) await join('own', HELPER);
        await join('a');
        const session = await fixture.open(later ? 'helper' : 'worker');
        const answersNow = (instanceId: string) => expectAnswers(instanceId, later ? WORKER : {}, session);
        await answersNow('a');
        await join('b');
        await leave('a');
        await answersNow('b');
        await comeBack('a');
        await answersNow('b');
        await leave('b');
        await answersNow('a');
        await comeBack('b');
        await answersNow('a');
        if (later) return expect(await answerer({}, session)).toBe('own');
        expect([await counts('a'), await counts('b')]).toEqual([
          [1, 0, 1],
          [1, 0],
        ]);
        expect(await joined(session)).toEqual([
          ['b', 'failover'],
          ['a', 'failover'],
        ]);
      },
    );
  });

  describe('a hosted agent that cannot be reached', () => {
    const hosted = { public_url: 'http://192.0.2.1/', mesh_id: null };
    /** Its node finds that nothing goes out. */
    async function passOver(wish: object, contextId?: string, paused?: string) {
      const { sent, instance_id } = await give(wish, contextId);
      const open = await fixture.dispatched(sent);
      await fixture.dispatches.release(open, 'CONNECT_FAILED', { nothingSent: true });
      return { before: instance_id, after: (await fixture.dispatched(sent, paused)).instance_id, sent };
    }

    test('is passed over, and the session stays with the next', async () => {
      await join('a', hosted);
      const session = await fixture.open();
      await join('b');
      const { sent, ...chosen } = await passOver({}, session, 'a');
      expect(chosen).toEqual({ before: 'a', after: 'b' });
      await fixture.answer(sent);
      expect(await answerer({}, session)).toBe('b');
      expect(await joined(session)).toEqual([
        ['a', 'init'],
        ['b', 'failover'],
      ]);
    });

    test('is waited for where the message names it', async () => {
      await join('a', hosted);
      await join('b');
      expect(await passOver({ instance_id: 'a' })).toMatchObject({ before: 'a', after: 'a' });
    });
  });
});
