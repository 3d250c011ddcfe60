import { expect, test } from 'vitest';
import { newId } from '../../runtime/ids.js';
import type { RecordFixture, Sent } from '../setup/record-fixture.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { acceptCalls } from './accept-calls.js';

const { accept, agent, database, dispatches, insert, names, one, transactionsOf, two } = await acceptCalls();

/** A session of the agent that is being changed. */
async function heldSession(): Promise<{ lock: RowLock; contextId: string }> {
  const { session_id: contextId } = await accept(`${agent.instance}-first`);
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [contextId]);
  return { lock, contextId };
}

const lockRoom = (instanceId: string) =>
  RowLock.on(database.url, `SELECT pg_advisory_xact_lock(hashtextextended('capacity:' || $1 || ':' || $2, 0))`, [
    one.tenantId,
    instanceId,
  ]);

/** Locks that others may hold while messages come: how one is held, and how the message that needs it is sent. */
const HELD: {
  what: string;
  /** Whose messages need it not. */
  others: RecordFixture;
  hold: () => Promise<{ release: () => Promise<unknown>; needs: () => Promise<Sent> }>;
}[] = [
  {
    what: 'a session that is being changed',
    others: one,
    hold: async () => {
      const { lock, contextId } = await heldSession();
      return { release: () => lock.release(), needs: () => accept(`${agent.instance}-needs`, { contextId }) };
    },
  },
  {
    what: 'a messageId that another transaction is writing',
    others: two,
    hold: async () => {
      let end: (() => void) | undefined;
      const hook = () => new Promise<void>((resolve) => (end = resolve));
      const first = accept(`${agent.instance}-same`, { hook });
      await until(() => end, { what: 'the first to be written' });
      const release = async () => {
        end?.();
        expect((await first).verdict).toBe('dispatched');
      };
      return { release, needs: () => accept(`${agent.instance}-same`) };
    },
  },
];

const lockWaiters = () =>
  database.value<number>(
    `SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );

test.each(HELD)(
  '$what: who needs it waits alone, and no statement of others is undone',
  async ({ others: of, hold }) => {
    const { release, needs } = await hold();
    const others = (count: number) => names(count).map((name) => accept(`${name}-${newId('msg')}`, { of }));
    const beside = names(5).map((name) => accept(`${name}-beside`, { of }));
    let done = false;
    const waits = needs().finally(() => (done = true));
    const first = await Promise.all([...beside, ...others(20)]);
    expect(first.map(({ verdict }) => verdict)).toEqual(first.map(() => 'dispatched'));
    await until(async () => (await lockWaiters()) === 1, { what: 'the one that waits for the lock' });
    const later = await Promise.all(others(20));
    expect(later.map(({ verdict }) => verdict)).toEqual(later.map(() => 'dispatched'));
    expect(done).toBe(false);
    await release();
    expect(['dispatched', 'repeat']).toContain((await waits).verdict);
  },
);

test.each([[undefined], [async () => undefined]])(
  'who finds the room of an agent held waits for nobody, and joins its queue',
  async (push) => {
    const name = `${agent.instance}-held`;
    await insert(name, { agent_type: `${name}-type`, max_concurrent_sessions: 10 });
    const lock = await lockRoom(name);
    const { verdict } = await accept(newId('msg'), { agentType: `${name}-type`, hook: push });
    expect(verdict).toBe('queued');
    await lock.release();
  },
);

test('messages that wait for one lock wait on one connection, and go together when it is free', async () => {
  const { lock, contextId } = await heldSession();
  const waiting = names(20).map((name) => accept(`${name}-needs`, { contextId }));
  await until(lockWaiters, { what: 'one that waits' });
  // Calls have their turns in order: once these are answered, all twenty have met the lock.
  for (const name of names(3)) await accept(`${name}-behind`, { of: two });
  const settled = await transactionsOf(async () => {
    await lock.release();
    const verdicts = (await Promise.all(waiting)).map(({ verdict }) => verdict);
    expect(verdicts).toEqual(waiting.map(() => 'dispatched'));
  });
  expect(settled).toBeLessThanOrEqual(3);
});

test('an end whose message is locked waits alone, and is taken once it is free', async () => {
  const sent = await Promise.all(names(8).map((name) => accept(name)));
  const [locked] = sent;
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM running_messages WHERE message_id = $1', [
    locked?.message_id,
  ]);
  const ends = sent.map((message) => dispatches.end(message, { state: 'completed' }, 1));
  expect((await Promise.all(ends.slice(1))).map((end) => end?.state)).toEqual(Array(7).fill('completed'));
  await until(() => lock.waiters(), { what: 'the end that waits' });
  await lock.release();
  expect((await ends[0])?.state).toBe('completed');
});

/** Expires the idempotency key of a message and deletes it, in a transaction that stays open until the lock is released. */
async function sweepKeyOf(messageId: string): Promise<RowLock> {
  await database.query(
    "UPDATE idempotency_keys SET expires_at = now() - interval '1 s' WHERE 'msg_' || message_id = $1",
    [messageId],
  );
  const sweep = `WITH swept AS (DELETE FROM idempotency_keys WHERE 'msg_' || message_id = $1)
    SELECT 1 FROM messages WHERE message_id = $1`;
  return RowLock.on(database.url, sweep, [messageId]);
}

test('a messageId whose key is swept meanwhile is new', async () => {
  const first = await accept(agent.instance);
  const sweeper = await sweepKeyOf(first.message_id);
  const second = accept(agent.instance, { text: 'other' });
  await until(() => sweeper.waiters(), { what: 'the message that meets its key' });
  await sweeper.release();
  expect(await second).toMatchObject({ verdict: 'dispatched', message_id: (await second).newId });
});

test('a message whose expired key is being swept undoes no statement of others', async () => {
  const known = await accept(agent.instance);
  const sweeper = await sweepKeyOf(known.message_id);
  const first = accept(`${agent.instance}-first`); // those behind it share the next statement
  let swept: Promise<Sent> | undefined;
  const transactions = await transactionsOf(async () => {
    const calls = names(20).map((name, place) => {
      if (place === 10) swept = accept(agent.instance);
      return accept(name);
    });
    const verdicts = (await Promise.all([first, ...calls])).map(({ verdict }) => verdict);
    expect(new Set(verdicts)).toEqual(new Set(['dispatched']));
  });
  expect(transactions).toBeLessThan(5);
  await sweeper.release();
  expect(await swept).toMatchObject({ verdict: 'dispatched' });
});
