import { expect, test } from 'vitest';
import type { Tx } from '../../db/pool.js';
import { uuidOf } from '../../runtime/ids.js';
import { consumeEvents, type PositionedEvent } from '../../telemetry/event-reader.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { gate } from '../setup/until.js';
import { positionAll, writeEvent } from './event-writer.js';

const database = await freshDatabase();
const db = database.db();
const tenantId = await insertTenant(database);
await database.query('CREATE TABLE handled (consumer text, event_id text); GRANT ALL ON handled TO fleet_system');

const handle = (consumer: string) => async (tx: Tx, events: PositionedEvent[]) => {
  const ids = events.map(({ record }) => record.event_id);
  await tx.query('INSERT INTO handled SELECT $1, unnest($2::text[])', [consumer, ids]);
  return ids.length;
};
const handledBy = (consumer: string) =>
  database.column<string>('SELECT event_id FROM handled WHERE consumer = $1', [consumer]);
async function writeMany(count: number): Promise<string[]> {
  const ids = [];
  for (let written = 0; written < count; written += 1) ids.push(await writeEvent(database, tenantId));
  await positionAll(db);
  return ids;
}
async function join(consumer: string): Promise<void> {
  expect(await consumeEvents(db, { consumer, limit: 1 }, handle(consumer))).toBeNull();
}

test('a new consumer begins with what follows, and nodes that share its name get each event once', async () => {
  await writeMany(3);
  await join('shared');
  const ids = await writeMany(50);
  const node = async () => {
    for (let tries = 0; tries < 100 && (await handledBy('shared')).length < ids.length; tries += 1)
      await consumeEvents(db, { consumer: 'shared', limit: 7 }, handle('shared'));
  };
  await Promise.all([node(), node(), node()]);
  expect((await handledBy('shared')).sort()).toEqual(ids);
  expect(await consumeEvents(db, { consumer: 'shared', limit: 7 }, handle('shared'))).toBe(0);
});

test('a consumer that fails gets the same events again, and nothing of the failed try stays', async () => {
  await join('failing');
  const ids = await writeMany(4);
  const fail = async (tx: Tx, events: PositionedEvent[]) => {
    await handle('failing')(tx, events);
    throw new Error('no luck');
  };
  await expect(consumeEvents(db, { consumer: 'failing', limit: 10 }, fail)).rejects.toThrow('no luck');
  expect(await handledBy('failing')).toEqual([]);
  expect(await consumeEvents(db, { consumer: 'failing', limit: 10 }, handle('failing'))).toBe(4);
  expect(await handledBy('failing')).toEqual(ids);
});

test('a consumer that takes some of the events gets the others again', async () => {
  await join('slow');
  const ids = await writeMany(5);
  const takeTwo = (tx: Tx, events: PositionedEvent[]) => handle('slow')(tx, events.slice(0, 2));
  for (const taken of [2, 2, 1, 0])
    expect(await consumeEvents(db, { consumer: 'slow', limit: 4 }, takeTwo)).toBe(taken);
  expect(await handledBy('slow')).toEqual(ids);
});

test('while one node reads, another gets nothing and does not wait', async () => {
  await join('busy');
  await writeMany(1);
  const [entered, leave] = [gate(), gate()];
  const first = consumeEvents(db, { consumer: 'busy', limit: 10 }, async (_tx, events) => {
    entered.open();
    await leave.promise;
    return events.length;
  });
  await entered.promise;
  expect(await consumeEvents(db, { consumer: 'busy', limit: 10 }, handle('busy'))).toBeNull();
  leave.open();
  expect(await first).toBe(1);
});

test('events may be dropped once they have positions and every consumer has read them', async () => {
  const END = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  const consumed = (bound: string) => database.value('SELECT events_consumed($1)', [bound]);
  await database.query("DELETE FROM event_cursors WHERE consumer <> 'shared'");
  await consumeEvents(db, { consumer: 'shared', limit: 1_000 }, handle('shared'));
  expect(await consumed(END)).toBe(true);
  const [first = ''] = await writeMany(1);
  expect(await consumed(END)).toBe(false);
  expect(await consumed(uuidOf(first))).toBe(true);
  await consumeEvents(db, { consumer: 'shared', limit: 10 }, handle('shared'));
  expect(await consumed(END)).toBe(true);
  await writeEvent(database, tenantId);
  expect(await consumed(END)).toBe(false);
});

test('a consumer of some tenants passes over the events of others, and of a tenant that comes later over none', async () => {
  const [wanted, other] = [await insertTenant(database), await insertTenant(database)];
  await database.query('CREATE TABLE wanted_tenants (tenant_id text); GRANT SELECT ON wanted_tenants TO fleet_system');
  await database.query('INSERT INTO wanted_tenants VALUES ($1)', [wanted]);
  const seen: string[] = [];
  const from = { consumer: 'of some', limit: 100, tenants: 'SELECT tenant_id FROM wanted_tenants' };
  const consume = () =>
    consumeEvents(db, from, async (_tx, events) => {
      seen.push(...events.map(({ record }) => record.tenant_id));
      return events.length;
    });
  const write = async (tenant_id: string) => {
    await writeEvent(database, tenant_id);
    await positionAll(db);
  };
  await consume();
  for (const tenantId of [wanted, other]) await write(tenantId);
  await consume();
  expect(seen).toEqual([wanted]);
  await database.query('INSERT INTO wanted_tenants VALUES ($1)', [other]);
  await write(other);
  await consume();
  expect(seen).toEqual([wanted, other]);
});
