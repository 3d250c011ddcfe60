import { beforeEach, expect, test } from 'vitest';
import { ListTasksRequest } from '../../contracts/a2a/a2a-1-requests.js';
import { MessagesGetRequest } from '../../contracts/api/messages.js';
import { TELEMETRY_OPERATIONS } from '../../contracts/api/telemetry.js';
import { LIMITS } from '../../contracts/limits.js';
import { NO_AGENT } from '../../contracts/primitives.js';
import type { Db } from '../../db/pool.js';
import { listMessages } from '../../messages/read/lists/message-list.js';
import { listTasks } from '../../messages/read/lists/task-list.js';
import { uuidOf } from '../../runtime/ids.js';
import { createSecrets } from '../../runtime/secrets.js';
import { listEvents } from '../../telemetry/event-list.js';
import { database, idAt, MONTHS_AGO, month, tenantId, usePastMonths } from './retention-fixture.js';

const secrets = createSecrets(Buffer.alloc(32, 7).toString('base64'));
let placed = 0;

/** A group with one event of a session, written at a time. */
async function event(session: string, at: Date): Promise<void> {
  placed += 1;
  await database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, types, events, occurred_at)
     VALUES (uuid_of($1), $3, session_uuid(uuid_of($1), $2), $2, uuid_of($4), event_bit('message.received'), '[{}]', $5)`,
    [tenantId, session, uuidOf(idAt('evt', at, placed * 100)), idAt('msg', at, placed), at],
  );
}

/** A message of a session that was answered at once, at a time, and its event. */
async function message(session: string, at: Date, changedAt = at): Promise<void> {
  await event(session, at);
  await database.query(
    `WITH written AS (
       INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, deadline_ms, state, created_at, updated_at)
       VALUES ($1, $2, $3, session_uuid(uuid_of($1), $3), 'cred_1', $2, 'message/send', '[]', 1000, 'completed', $4, $5) RETURNING *)
     INSERT INTO late_changes SELECT tenant_id, message_id, session_id, updated_at FROM written WHERE message_id < late_bound(updated_at)`,
    [tenantId, idAt('msg', at, placed), session, at, changedAt],
  );
}

/** A database whose statements are explained: for each, the months of the partitions for which it is planned. */
function explained(db: Db): { db: Db; plans: { text: string; months: string[] }[] } {
  const plans: { text: string; months: string[] }[] = [];
  const tenant: Db['tenant'] = (id, work) =>
    db.tenant(id, (tx) =>
      work({
        ...tx,
        query: async (text, values, name) => {
          if (/^\s*(SELECT|WITH)/.test(text)) {
            const lines = await tx.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values);
            const plan = lines.map((line) => line['QUERY PLAN']).join('\n');
            const months = [...plan.matchAll(/ on (?:messages|event_groups)_(\d{4}_\d{2})/g)].map(
              ([, name = '']) => name,
            );
            plans.push({ text, months: [...new Set(months)].sort() });
          }
          return tx.query(text, values, name);
        },
      }),
    );
  return { db: { ...db, tenant }, plans };
}

const reader = () => ({ tenant_id: tenantId, agent_type: NO_AGENT });
const suffixes = (...ago: number[]) => ago.map((months) => month(months).suffix).sort();
type List = (db: Db, session: string, page: number) => Promise<{ ids: string[]; count: number }>;

const messages: List = async (db, session_id, page) => {
  const query = MessagesGetRequest.parse({ session_id, page, page_size: 3 });
  const { rows, count } = await listMessages({ db, secrets, inFlightMax: 2_000 }, reader(), query);
  return { ids: rows.map(({ message_id }) => message_id), count };
};
const events: List = async (db, session_id, page) => {
  const query = TELEMETRY_OPERATIONS.getEvents.request.parse({ session_id, page, page_size: 3 });
  const { rows, count } = await listEvents(db, tenantId, query);
  return { ids: rows.map(({ event_id }) => event_id), count };
};

/** The pages of a list until an empty one. */
async function pagesOf(list: List, db: Db, session: string) {
  const pages = [];
  for (let page = 1; pages.at(-1)?.ids.length !== 0; page += 1) pages.push(await list(db, session, page));
  return pages;
}

async function tasksOf(db: Db, contextId: string, pageSize = 2): Promise<string[]> {
  const ids: string[] = [];
  for (let pageToken: string | undefined; pageToken !== ''; ) {
    const query = ListTasksRequest.parse({ contextId, pageSize, ...(pageToken && { pageToken }) });
    const page = await listTasks({ db, secrets }, reader(), query);
    ids.push(...page.tasks.map(({ id }) => id));
    pageToken = page.nextPageToken;
  }
  return ids;
}

const idsOf = (select: string, session: string) => database.column<string>(select, [tenantId, session]);
const MESSAGES =
  'SELECT message_id AS id FROM messages WHERE tenant_id = $1 AND session_id = $2 ORDER BY message_id DESC';
const TASKS =
  'SELECT message_id AS id FROM messages WHERE tenant_id = $1 AND session_id = $2 ORDER BY updated_at DESC, message_id DESC';
const EVENTS = 'SELECT event_id AS id FROM events WHERE tenant_id = $1 AND session_id = $2 ORDER BY event_id DESC';

usePastMonths();
beforeEach(async () => {
  const [border, now] = [Date.parse(month(2).first), new Date()];
  for (const ago of MONTHS_AGO) {
    for (let n = 0; n < 4; n += 1) await message('long', new Date(month(ago).middle.getTime() + n));
  }
  await message('long', new Date(month(4).middle.getTime() + 9), month(1).middle);
  await message('long', now);
  for (let n = 0; n < 4; n += 1) await message('old', new Date(month(4).middle.getTime() + n));
  for (const at of [border - 1, border, border + 1]) await message('border', new Date(at));
  await message('active', month(1).middle);
  await message('active', now);
  // A plan comes before the messages of its steps, a refusal after the end.
  await event('early-and-late', month(5).middle);
  await message('early-and-late', month(3).middle);
  await event('early-and-late', month(2).middle);
});

test('lists of a session have all its rows, whichever months they are of', async () => {
  const db = database.db();
  for (const session of ['long', 'old', 'border', 'active', 'early-and-late', 'unknown']) {
    for (const [list, select] of [
      [messages, MESSAGES],
      [events, EVENTS],
    ] as const) {
      const expected = await idsOf(select, session);
      const pages = await pagesOf(list, db, session);
      expect(
        pages.flatMap(({ ids }) => ids),
        session,
      ).toEqual(expected);
      expect(
        pages.map(({ count }) => count),
        session,
      ).toEqual(pages.map(() => expected.length));
      for (let page = pages.length; page >= 1; page -= 1) {
        expect(await list(db, session, page), session).toEqual(pages[page - 1]);
      }
    }
    expect(await tasksOf(db, session), session).toEqual(await idsOf(TASKS, session));
  }
});

test('what a session gets after a page of it is on the next one that is read', async () => {
  const db = database.db();
  const before = await messages(db, 'old', 1);
  await message('old', new Date());
  const [newest] = await idsOf(MESSAGES, 'old');
  expect((await messages(db, 'old', 1)).ids).toEqual([newest, ...before.ids.slice(0, 2)]);
  expect((await tasksOf(db, 'old'))[0]).toBe(newest);
  expect((await events(db, 'old', 1)).count).toBe(5);
});

test('lists of a session are planned for the months of the session alone', async () => {
  const monthsOf = async (list: (db: Db) => Promise<unknown>) => {
    const { db, plans } = explained(database.db());
    await list(db);
    return [...new Set(plans.flatMap(({ months }) => months))].sort();
  };
  for (const [session, ago] of [
    ['old', [4]],
    ['border', [3, 2]],
  ] as const) {
    expect(await monthsOf((db) => pagesOf(messages, db, session)), session).toEqual(suffixes(...ago));
    expect(await monthsOf((db) => pagesOf(events, db, session)), session).toEqual(suffixes(...ago));
    expect(await monthsOf((db) => tasksOf(db, session)), session).toEqual(suffixes(...ago));
  }
  expect(await monthsOf((db) => events(db, 'early-and-late', 1))).toEqual(suffixes(5, 4, 3, 2));
  expect(await monthsOf((db) => messages(db, 'early-and-late', 1))).toEqual(suffixes(3));
});

/** More messages of a session than are counted, of this moment, and an event for each. No other message of this file has such an id. */
async function manyMessages(session: string): Promise<void> {
  await database.query(
    `WITH made AS (SELECT id_bound('msg', now() - n * interval '1 ms') || '-7000-9000-' || lpad(n || '00', 12, '0') AS id FROM generate_series(1, $3::int) n),
     events AS (
       INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, types, events)
       SELECT uuid_of($1), uuid_of(id), session_uuid(uuid_of($1), $2), $2, uuid_of(id), event_bit('message.received'), '[{}]' FROM made)
     INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, deadline_ms, state)
       SELECT $1, id, $2, session_uuid(uuid_of($1), $2), 'cred_1', id, 'message/send', '[]', 1000, 'completed' FROM made`,
    [tenantId, session, LIMITS.countExactMax + 1],
  );
  await database.query('ANALYZE messages, event_groups');
}

test('a page of a long list is planned for the newest months', async () => {
  await manyMessages('long');
  const { db, plans } = explained(database.db());
  const planned = async (part: string, list: () => Promise<unknown>) => {
    await list(); // finds that it is too long to be counted
    plans.length = 0;
    await list();
    return plans.find(({ text }) => text.includes(part))?.months.length;
  };
  const [newest, oldest] = [await messages(db, 'long', 1), await messages(db, 'long', 3_340)];
  expect(newest.ids).toEqual((await idsOf(MESSAGES, 'long')).slice(0, 3));
  expect(oldest.ids).toEqual((await idsOf(MESSAGES, 'long')).slice(10_017, 10_020));
  expect(await planned('SELECT m.message_id AS key', () => messages(db, 'long', 1))).toBeLessThanOrEqual(2);
  expect(await planned('WITH found', () => events(db, 'long', 1))).toBeLessThanOrEqual(2);
  const all = TELEMETRY_OPERATIONS.getEvents.request.parse({ page_size: 3 });
  expect(await planned('WITH found', () => listEvents(db, tenantId, all))).toBeLessThanOrEqual(4); // with two to come
  expect(await planned('FROM events', () => listEvents(db, tenantId, all))).toBeLessThanOrEqual(2);
  const tasks = ListTasksRequest.parse({ contextId: 'long', pageSize: 2 });
  expect(await planned('x.message_id', () => listTasks({ db, secrets }, reader(), tasks))).toBeLessThanOrEqual(2);
});
