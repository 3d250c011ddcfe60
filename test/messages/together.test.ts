import { beforeEach, expect, test } from 'vitest';
import { runAcceptTransaction, UNCOUNTED } from '../../messages/accept/accept-transaction.js';
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
async function accept(messageId: string, options: { tenant?: string; text?: string; contextId?: string } = {}) {
  const { tenant = TENANTS[0], text = messageId, contextId } = options;
  const message = { kind: 'message', role: 'user', messageId, parts: [{ kind: 'text', text }] } as const;
  const params = {
    message: { ...message, parts: [...message.parts], ...(contextId && { contextId }) },
    metadata: { instance_id: instance },
  };
  const draft = draftOf(callerOf(tenant), params, { method: 'message/send' });
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
    const [found] = await database.query<{ n: string }>('SELECT count(DISTINCT xmin::text) AS n FROM events');
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

test('a messageId is new once its time is over', async () => {
  const first = await accept(instance);
  await database.query("UPDATE idempotency_keys SET expires_at = now() - interval '1 s' WHERE client_message_id = $1", [
    instance,
  ]);
  const second = await accept(instance, { text: 'other' });
  expect([first, second].map(({ row }) => row.verdict)).toEqual(['dispatched', 'dispatched']);
  expect((await accept(instance, { text: 'other' })).row).toMatchObject({
    verdict: 'repeat',
    message_id: second.row.message_id,
  });
});
