import { beforeEach, expect, test } from 'vitest';
import { type AcceptHook, runAcceptTransaction, UNCOUNTED } from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { newId } from '../../runtime/ids.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';

const MANY = 100;
const TENANTS = [newId('ten'), newId('ten')] as const;

const database = await freshDatabase();
const db = database.db();
const dispatches = createDispatches(messageCore(db));
for (const tenant of TENANTS) await insertTenant(database, tenant);
let instance: string;
beforeEach(async () => {
  instance = newId('con');
  const agent = { instance_id: instance, mesh_id: 'mesh_1', connection_epoch: 1 };
  for (const tenant_id of TENANTS) await insertAgent(database, { tenant_id, ...agent });
});

/** The accept transaction of one message. */
async function accept(
  messageId: string,
  options: { tenant?: string; text?: string; contextId?: string; push?: AcceptHook; agentType?: string } = {},
) {
  const { tenant = TENANTS[0], text = messageId, contextId, agentType: agent_type } = options;
  const message = { kind: 'message', role: 'user', messageId, parts: [{ kind: 'text', text }] } as const;
  const params = {
    message: { ...message, parts: [...message.parts], ...(contextId && { contextId }) },
    metadata: agent_type === undefined ? { instance_id: instance } : { agent_type },
  };
  const draft = { ...draftOf(callerOf(tenant), params, { method: 'message/send' }), push: options.push };
  const dispatch_id = newId('dsp');
  const row = await runAcceptTransaction(db, draft, {
    counting: UNCOUNTED,
    offer: { dispatch_id, mesh_id: 'mesh_1', any_mesh: false },
    idempotencyHours: 1,
  });
  const { message_id, session_id } = row;
  const produced = { artifacts: [], usage: null };
  return { row, ref: { tenant_id: tenant, message_id, dispatch_id, session_id, produced }, draft };
}

/** Transactions that wrote for `work`. */
async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    const [found] = await database.query<{ n: string }>(
      'SELECT count(DISTINCT transaction_id::text) AS n FROM event_groups',
    );
    return Number(found?.n);
  };
  const before = await count();
  await work();
  return (await count()) - before;
}

const names = (count: number) => Array.from({ length: count }, (_, place) => `${instance}-${place}`);

test('messages that come at once share transactions, and each gets its own answer', async () => {
  let sent: Awaited<ReturnType<typeof accept>>[] = [];
  const accepting = await transactionsOf(async () => {
    sent = await Promise.all(names(MANY).map((name, place) => accept(name, { tenant: TENANTS[place % 2] as string })));
  });
  expect(sent.map(({ row }) => row.verdict)).toEqual(sent.map(() => 'dispatched'));
  expect(sent.map(({ row }) => row.message_id)).toEqual(sent.map(({ draft }) => draft.message_id));
  expect(accepting).toBeLessThan(MANY / 4);
  const ending = await transactionsOf(async () => {
    const ends = await Promise.all(
      sent.map(({ ref }, place) => {
        const parts = [{ kind: 'text' as const, text: `answer ${place}` }];
        return dispatches.end(ref, { state: 'completed', artifacts: [{ artifactId: 'a', parts }] }, 1);
      }),
    );
    expect(ends.map((found) => found?.state)).toEqual(ends.map(() => 'completed'));
  });
  expect(ending).toBeLessThan(MANY / 4);
  const rows = await database.query<{ message_id: string; tenant_id: string; answer: string }>(
    `SELECT message_id, tenant_id, artifacts #>> '{0,parts,0,text}' AS answer FROM messages WHERE instance_id = $1`,
    [instance],
  );
  const written = new Map(rows.map((row) => [row.message_id, row]));
  expect(sent.map(({ ref }) => written.get(ref.message_id)?.answer)).toEqual(sent.map((_, place) => `answer ${place}`));
  expect(sent.map(({ ref }) => written.get(ref.message_id)?.tenant_id)).toEqual(sent.map(({ ref }) => ref.tenant_id));
});

test('a repeat beside its first is the same message, other content is refused', async () => {
  const [first, repeat, other] = await Promise.all([
    accept(instance),
    accept(instance),
    accept(instance, { text: 'other' }),
  ]);
  expect([first, repeat, other].map(({ row }) => row.verdict)).toEqual(['dispatched', 'repeat', 'mismatch']);
  expect(repeat?.row.message_id).toBe(first?.row.message_id);
});

test('one that the database cannot take fails alone', async () => {
  const all = await Promise.allSettled(
    names(9).map((name, place) => accept(name, place === 4 ? { text: '\u0000' } : {})),
  );
  expect(all.map(({ status }) => status)).toEqual(all.map((_, place) => (place === 4 ? 'rejected' : 'fulfilled')));
});

test('an end of another epoch is refused alone', async () => {
  const sent = await Promise.all(names(8).map((name) => accept(name)));
  const ends = await Promise.all(
    sent.map(({ ref }, place) => dispatches.end(ref, { state: 'completed' }, place === 3 ? 2 : 1)),
  );
  expect(ends.map((found) => found?.state)).toEqual(ends.map((_, place) => (place === 3 ? undefined : 'completed')));
});

test('who waits for a lock holds nobody up', async () => {
  const { row } = await accept(`${instance}-first`);
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [row.session_id]);
  const locked = names(3).map((name) => accept(`${name}-locked`, { contextId: row.session_id }));
  const others = await Promise.all(names(20).map((name) => accept(name)));
  expect(others.map((found) => found.row.verdict)).toEqual(others.map(() => 'dispatched'));
  await until(() => lock.waiters(), { what: 'somebody who waits for the lock' });
  expect((await accept(`${instance}-late`)).row.verdict).toBe('dispatched');
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
      const { row } = await accept(`${instance}-first`);
      const lock = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [row.session_id]);
      return { release: () => lock.release(), needs: () => accept(`${instance}-needs`, { contextId: row.session_id }) };
    },
  },
  {
    what: 'the room of an agent',
    hold: async () => {
      await database.query('UPDATE agents SET max_concurrent_sessions = 1000 WHERE instance_id = $1', [instance]);
      const name = `SELECT pg_advisory_xact_lock(hashtextextended('capacity:' || tenant_id || ':' || instance_id, 0)) FROM agents
        WHERE tenant_id = $1 AND instance_id = $2`;
      const lock = await RowLock.on(database.url, name, [TENANTS[0], instance]);
      return { release: () => lock.release(), needs: () => accept(`${instance}-needs`) };
    },
  },
  {
    what: 'a messageId that another transaction is writing',
    hold: async () => {
      let end: (() => void) | undefined;
      const push = () => new Promise<void>((resolve) => (end = resolve));
      const first = accept(`${instance}-same`, { push });
      await until(() => end, { what: 'the first to be written' });
      const release = async () => {
        end?.();
        expect((await first).row.verdict).toBe('dispatched');
      };
      return { release, needs: () => accept(`${instance}-same`) };
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
  const agentType = `${instance}-type`;
  const [one, two] = [`${instance}-1`, `${instance}-2`];
  const agent = { agent_type: agentType, mesh_id: 'mesh_1', connection_epoch: 1, max_concurrent_sessions: 10 };
  for (const instance_id of [one, two]) await insertAgent(database, { tenant_id: TENANTS[0], instance_id, ...agent });
  const room = `SELECT pg_advisory_xact_lock(hashtextextended('capacity:' || $1 || ':' || $2, 0))`;
  const lock = await RowLock.on(database.url, room, [TENANTS[0], one]);
  const other = await RowLock.on(database.url, room, [TENANTS[0], two]);
  const states: string[] = [];
  const push: AcceptHook = async (_tx, _message, state) => void states.push(state);
  const sending = accept(`${instance}-push`, { agentType, push });
  await until(async () => (await lockWaiters()) === 1, { what: 'the message that waits for the first room' });
  await database.query(`UPDATE agents SET status = 'busy' WHERE instance_id = $1`, [one]);
  await lock.release();
  const { row, draft } = await sending;
  expect(row).toMatchObject({ verdict: 'accepted', message_id: draft.message_id });
  expect(states).toEqual(['submitted']);
  await other.release();
});

test('messages that wait for one lock wait on one connection, and go together when it is free', async () => {
  const { row } = await accept(`${instance}-first`);
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

test.each([
  ['its time is over', "UPDATE idempotency_keys SET expires_at = now() - interval '1 s' WHERE message_id = $1"],
  ['its message is deleted', 'DELETE FROM messages WHERE message_id = $1'],
])('a messageId is new once %s', async (_what, change) => {
  const first = await accept(instance);
  await database.query(change, [first.row.message_id]);
  const second = await accept(instance, { text: 'other' });
  expect([first, second].map(({ row }) => row.verdict)).toEqual(['dispatched', 'dispatched']);
  expect((await accept(instance, { text: 'other' })).row).toMatchObject({
    verdict: 'repeat',
    message_id: second.row.message_id,
  });
});
