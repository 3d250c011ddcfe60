import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { maintainTables } from '../../db/maintenance.js';
import { newEventId } from '../../runtime/ids.js';
import { readEvents } from '../../telemetry/event-reader.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { randomFrom } from '../setup/seed.js';
import { until } from '../setup/until.js';
import { connect, idsAfter, positionAll, writeEvent } from './event-writer.js';

const database = await freshDatabase();
const db = database.db();
const tenantId = await insertTenant(database);
const write = () => writeEvent(database, tenantId);

test('a transaction that begins first and commits last is read last, and keeps no other waiting', async () => {
  const start = await positionAll(db);
  const slow = await connect(database.url);
  await slow.query('BEGIN');
  const late = await writeEvent(slow, tenantId);
  const early = [await write(), await write()];
  await positionEvents(db);
  expect(await idsAfter(db, start)).toEqual(early);
  const cursor = await positionAll(db);
  const next = await write();
  await positionEvents(db);
  expect(await idsAfter(db, cursor)).toEqual([next]);
  await slow.query('COMMIT');
  await positionEvents(db);
  expect(await idsAfter(db, cursor)).toEqual([next, late]);
  expect(await positionEvents(db)).toBe(0);
});

test('what was rolled back has no position, and what a savepoint kept has one', async () => {
  const start = await positionAll(db);
  const client = await connect(database.url);
  await client.query('BEGIN');
  await writeEvent(client, tenantId);
  await client.query('ROLLBACK');
  await client.query('BEGIN; SAVEPOINT one');
  const kept = await writeEvent(client, tenantId);
  await client.query('SAVEPOINT two');
  await writeEvent(client, tenantId);
  await client.query('ROLLBACK TO two; COMMIT');
  await positionAll(db);
  expect(await idsAfter(db, start)).toEqual([kept]);
});

test('a transaction that begins after the commit of another is read after it, whatever their ids say', async () => {
  const start = await positionAll(db);
  const [low, high] = [newEventId(), newEventId()];
  await writeEvent(database, tenantId, high);
  await writeEvent(database, tenantId, low);
  await positionEvents(db);
  expect(await idsAfter(db, start)).toEqual([high, low]);
});

test('a backlog is positioned in batches, in which a transaction that commits late is not lost', async () => {
  const start = await positionAll(db);
  const ids = [await write(), await write()];
  const slow = await connect(database.url);
  await slow.query('BEGIN');
  const late = await writeEvent(slow, tenantId);
  const several = await connect(database.url);
  await several.query('BEGIN');
  for (let count = 0; count < 5; count += 1) ids.push(await writeEvent(several, tenantId));
  await several.query('COMMIT');
  ids.push(await write());
  expect(await positionEvents(db, 2)).toBe(2);
  expect(await positionEvents(db, 2)).toBe(5); // a transaction is not divided
  await slow.query('COMMIT');
  expect(await positionEvents(db, 2)).toBe(2);
  expect(await idsAfter(db, start)).toEqual([...ids.slice(0, 7), late, ...ids.slice(7)]);
  expect(await positionEvents(db, 2)).toBe(0);
});

test('maintenance deletes old batches, except the newest, and positions go on', async () => {
  await write();
  const end = await positionAll(db);
  await database.query("UPDATE event_batches SET positioned_at = now() - interval '2 hours'");
  await maintainTables(db);
  expect(await database.query('SELECT last_position::int FROM event_batches')).toEqual([
    { last_position: Math.floor(end / 256) },
  ]);
  const next = await write();
  await positionAll(db);
  expect(await idsAfter(db, end)).toEqual([next]);
});

test('a tenant reads its own events, by pages, and its cursor passes the others', async () => {
  const other = await insertTenant(database);
  const start = await positionAll(db);
  const own = [];
  for (let count = 0; count < 3; count += 1) {
    own.push(await write());
    await writeEvent(database, other);
  }
  const end = await positionAll(db);
  const read = (after: number) => db.system((tx) => readEvents(tx, { after, tenants: [tenantId], limit: 2 }));
  const first = await read(start);
  const second = await read(first.cursor);
  const ids = [first, second].map(({ events }) => events.map(({ record }) => record.event_id));
  expect(ids).toEqual([own.slice(0, 2), own.slice(2)]);
  expect(second.cursor).toBe(end);
  expect(await idsAfter(db, start, [tenantId, other])).toHaveLength(6);
  const visible = 'SELECT 1 FROM event_positions WHERE position > group_position_at($1)';
  expect(await db.tenant(other, (tx) => tx.query(visible, [start]))).toHaveLength(3);
});

test('one sequencer at a time works; what a killed one left goes on with the next', async () => {
  const start = await positionAll(db);
  const ids = [await write(), await write()];
  const blocker = await connect(database.url);
  await blocker.query('BEGIN; LOCK TABLE event_batches IN SHARE MODE');
  const first = positionEvents(db).catch((error: Error) => error);
  const stuck = await until(() =>
    database.value<number>(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    ),
  );
  expect(await positionEvents(db)).toBeNull();
  await database.query('SELECT pg_terminate_backend($1)', [stuck]);
  expect(await first).toBeInstanceOf(Error);
  await blocker.query('COMMIT');
  expect(await idsAfter(db, start)).toEqual([]);
  await positionAll(db);
  expect(await idsAfter(db, start)).toEqual(ids);
});

const random = randomFrom();

/** Writes in transactions of 1 to 3 events, some of which take longer or are rolled back. @returns the ids, in the order of the commits */
async function writeForAWhile(count: number): Promise<string[]> {
  const client = await connect(database.url);
  const committed: string[] = [];
  for (let round = 0; round < count; round += 1) {
    const ids: string[] = [];
    await client.query('BEGIN');
    for (let event = 0; event <= random() * 3; event += 1) {
      ids.push(await writeEvent(client, tenantId));
      await delay(random() * 5);
    }
    const isKept = random() < 0.9;
    await client.query(isKept ? 'COMMIT' : 'ROLLBACK');
    if (isKept) committed.push(...ids);
  }
  return committed;
}

test('a reader that follows two sequencers and many writers misses nothing, repeats nothing and sees causes first', async () => {
  let cursor = await positionAll(db);
  const seen: string[] = [];
  const follow = async () => {
    await positionEvents(db, 7);
    const page = await db.system((tx) => readEvents(tx, { after: cursor, limit: 5 }));
    cursor = page.cursor;
    seen.push(...page.events.map(({ record }) => record.event_id));
  };
  let writing = true;
  const whileWriting = async (work: () => Promise<unknown>) => {
    while (writing) await work();
  };
  const others = [whileWriting(() => positionEvents(db, 11)), whileWriting(follow)];
  const written = await Promise.all(Array.from({ length: 6 }, () => writeForAWhile(40)));
  writing = false;
  await Promise.all(others);
  const end = await positionAll(db);
  while (cursor < end) await follow();
  expect(seen.toSorted()).toEqual(written.flat().sort());
  for (const ids of written) {
    const own = new Set(ids);
    expect(seen.filter((id) => own.has(id))).toEqual(ids);
  }
});
