import { expect, test } from 'vitest';
import type { AcceptHook } from '../../messages/accept/accept-transaction.js';
import { newId } from '../../runtime/ids.js';
import { insertAgent } from '../setup/core.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { acceptCalls, TENANTS } from './accept-calls.js';

const { accept, agent, database, dispatches, names, transactionsOf } = await acceptCalls();

test('who waits for a lock holds nobody up', async () => {
  const { row } = await accept(`${agent.instance}-first`);
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [row.session_id]);
  const locked = names(3).map((name) => accept(`${name}-locked`, { contextId: row.session_id }));
  const others = await Promise.all(names(20).map((name) => accept(name)));
  expect(others.map((found) => found.row.verdict)).toEqual(others.map(() => 'dispatched'));
  await until(() => lock.waiters(), { what: 'somebody who waits for the lock' });
  expect((await accept(`${agent.instance}-late`)).row.verdict).toBe('dispatched');
  await lock.release();
  expect((await Promise.all(locked)).map((found) => found.row.verdict)).toEqual(locked.map(() => 'dispatched'));
});

/** Locks that others may hold while messages come: how one is held, and how the message that needs it is sent. */
const HELD: {
  what: string;
  hold: () => Promise<{ release: () => Promise<unknown>; needs: () => ReturnType<typeof accept> }>;
}[] = [
  {
    what: 'a session that is being changed',
    hold: async () => {
      const { row } = await accept(`${agent.instance}-first`);
      const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [row.session_id]);
      return {
        release: () => lock.release(),
        needs: () => accept(`${agent.instance}-needs`, { contextId: row.session_id }),
      };
    },
  },
  {
    what: 'the room of an agent',
    hold: async () => {
      await database.query('UPDATE agents SET max_concurrent_sessions = 1000 WHERE instance_id = $1', [agent.instance]);
      const name = `SELECT pg_advisory_xact_lock(hashtextextended('capacity:' || tenant_id || ':' || instance_id, 0)) FROM agents
        WHERE tenant_id = $1 AND instance_id = $2`;
      const lock = await RowLock.on(database.url, name, [TENANTS[0], agent.instance]);
      return { release: () => lock.release(), needs: () => accept(`${agent.instance}-needs`) };
    },
  },
  {
    what: 'a messageId that another transaction is writing',
    hold: async () => {
      let end: (() => void) | undefined;
      const push = () => new Promise<void>((resolve) => (end = resolve));
      const first = accept(`${agent.instance}-same`, { push });
      await until(() => end, { what: 'the first to be written' });
      const release = async () => {
        end?.();
        expect((await first).row.verdict).toBe('dispatched');
      };
      return { release, needs: () => accept(`${agent.instance}-same`) };
    },
  },
];

const lockWaiters = async () => {
  const [found] = await database.query<{ n: number }>(
    `SELECT count(*)::integer AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return found?.n ?? 0;
};

test.each(HELD)('$what: who needs it waits alone, and no statement of others is undone', async ({ hold }) => {
  const { release, needs } = await hold();
  const others = (count: number) =>
    names(count).map((name) => accept(`${name}-${newId('msg')}`, { tenant: TENANTS[1] }));
  const beside = names(5).map((name) => accept(`${name}-beside`, { tenant: TENANTS[1] }));
  let done = false;
  const waits = needs().finally(() => (done = true));
  const first = await Promise.all([...beside, ...others(20)]);
  expect(first.map(({ row }) => row.verdict)).toEqual(first.map(() => 'dispatched'));
  await until(async () => (await lockWaiters()) === 1, { what: 'the one that waits for the lock' });
  const later = await Promise.all(others(20));
  expect(later.map(({ row }) => row.verdict)).toEqual(later.map(() => 'dispatched'));
  expect(done).toBe(false);
  await release();
  expect(['dispatched', 'repeat']).toContain((await waits).row.verdict);
});

test('a message with a push config goes to the workflow path when the rooms of two agents are taken in turn', async () => {
  const agentType = `${agent.instance}-type`;
  const [one, two] = [`${agent.instance}-1`, `${agent.instance}-2`];
  const columns = { agent_type: agentType, mesh_id: 'mesh_1', connection_epoch: 1, max_concurrent_sessions: 10 };
  for (const instance_id of [one, two]) await insertAgent(database, { tenant_id: TENANTS[0], instance_id, ...columns });
  const room = `SELECT pg_advisory_xact_lock(hashtextextended('capacity:' || $1 || ':' || $2, 0))`;
  const lock = await RowLock.on(database.url, room, [TENANTS[0], one]);
  const other = await RowLock.on(database.url, room, [TENANTS[0], two]);
  const states: string[] = [];
  const push: AcceptHook = async (_tx, _message, state) => void states.push(state);
  const sending = accept(`${agent.instance}-push`, { agentType, push });
  await until(async () => (await lockWaiters()) === 1, { what: 'the message that waits for the first room' });
  await database.query(`UPDATE agents SET status = 'busy' WHERE instance_id = $1`, [one]);
  await lock.release();
  const { row, draft } = await sending;
  expect(row).toMatchObject({ verdict: 'accepted', message_id: draft.message_id });
  expect(states).toEqual(['submitted']);
  await other.release();
});

test('messages that wait for one lock wait on one connection, and go together when it is free', async () => {
  const { row } = await accept(`${agent.instance}-first`);
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [row.session_id]);
  const waiting = names(20).map((name) => accept(`${name}-needs`, { contextId: row.session_id }));
  await until(async () => (await lockWaiters()) > 0, { what: 'one that waits' });
  // Calls have their turns in order: once these are answered, all twenty have met the lock.
  for (const name of names(3)) await accept(`${name}-behind`, { tenant: TENANTS[1] });
  const settled = await transactionsOf(async () => {
    await lock.release();
    const verdicts = (await Promise.all(waiting)).map((found) => found.row.verdict);
    expect(verdicts).toEqual(waiting.map(() => 'dispatched'));
  });
  expect(settled).toBeLessThanOrEqual(3);
});

test('an end whose message is locked waits alone, and is taken once it is free', async () => {
  const sent = await Promise.all(names(8).map((name) => accept(name)));
  const [locked] = sent;
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM running_messages WHERE message_id = $1', [
    locked?.row.message_id,
  ]);
  const ends = sent.map(({ ref }) => dispatches.end(ref, { state: 'completed' }, 1));
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
  const sweeper = await sweepKeyOf(first.row.message_id);
  const second = accept(agent.instance, { text: 'other' });
  await until(() => sweeper.waiters(), { what: 'the message that meets its key' });
  await sweeper.release();
  expect((await second).row).toMatchObject({ verdict: 'dispatched', message_id: (await second).draft.message_id });
});

test('a message whose expired key is being swept undoes no statement of others', async () => {
  const known = await accept(agent.instance);
  const sweeper = await sweepKeyOf(known.row.message_id);
  const first = accept(`${agent.instance}-first`); // those behind it share the next statement
  let swept: ReturnType<typeof accept> | undefined;
  const transactions = await transactionsOf(async () => {
    const calls = names(20).map((name, place) => {
      if (place === 10) swept = accept(agent.instance);
      return accept(name);
    });
    const verdicts = (await Promise.all([first, ...calls])).map(({ row }) => row.verdict);
    expect(new Set(verdicts)).toEqual(new Set(['dispatched']));
  });
  expect(transactions).toBeLessThan(5);
  await sweeper.release();
  expect((await swept)?.row).toMatchObject({ verdict: 'dispatched' });
});
