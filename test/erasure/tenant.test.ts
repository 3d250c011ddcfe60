import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { deleteTenant } from '../../auth/tenants.js';
import { eraseNext } from '../../erasure/eraser.js';
import type { EraserDeps } from '../../erasure/eraser-deps.js';
import { findErasure } from '../../erasure/erasures.js';
import { MESSAGE_TABLES, SESSION_TABLES } from '../../erasure/message-tables.js';
import { childrenFirst, FOUND_BY_MESSAGE, KEPT_TABLES, tenantTables } from '../../erasure/tenant/tenant-tables.js';
import { createWorkflowErasure } from '../../messages/supervise/workflow-erasure.js';
import { uuidOf } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { testAuthor } from '../setup/author.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';
import { connectTemporal, untilDeath } from './eraser-fixture.js';

const database = await freshDatabase();
const log = createLogger({ level: 'silent' });
const { temporal, client } = await connectTemporal(log);

/** The tables from which a tenant is erased. */
const namesOfTables = async () => (await database.db().system(tenantTables)).map(({ name }) => name);

/** Every table with this column. */
function tablesWith(...columns: string[]): Promise<string[]> {
  return database.column(
    `SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = ANY ($1)
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`,
    [columns],
  );
}

interface Column {
  name: string;
  type: string;
}

/** The columns that a row has to have. */
function columnsOf(table: string): Promise<Column[]> {
  return database.query<Column>(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND (attnotnull OR attname = 'tenant_id') AND NOT atthasdef AND attidentity = ''`,
    [table],
  );
}

/** A value of the tenant that fits the column; the same text everywhere, so that rows refer to each other. */
function valueFor({ name, type }: Column, tenantId: string): unknown {
  if (name === 'tenant_id') return type === 'uuid' ? uuidOf(tenantId) : tenantId;
  const prefix = { message_id: 'msg', dispatch_id: 'dsp', event_id: 'evt' }[name];
  if (prefix) return type === 'uuid' ? uuidOf(tenantId) : tenantId.replace('ten', prefix);
  if (type === 'text') return tenantId;
  if (type === 'bytea') return Buffer.from(tenantId);
  if (name.endsWith('group_id')) return '00000000-0000-7000-8000-000000000000';
  if (type === 'uuid') return randomUUID();
  if (type.endsWith('[]')) return [];
  if (type === 'json') return '[]';
  if (type === 'jsonb') return '{}';
  if (type === 'boolean') return false;
  return /^(timestamp|date)/.test(type) ? new Date() : 1;
}

/** One row of the tenant in every table that has tenants. */
async function fillTables(tenantId: string, parentsFirst: readonly string[]): Promise<void> {
  for (const table of parentsFirst) {
    const columns = await columnsOf(table);
    const names = columns.map(({ name }) => name);
    const places = columns.map((_, index) => `$${index + 1}`);
    await database.query(
      `INSERT INTO ${table} (${names}) VALUES (${places})`,
      columns.map((column) => valueFor(column, tenantId)),
    );
  }
}

test('every table of tenants is erased or keeps rows for a stated reason, and every table of messages and sessions has its statement', async () => {
  const covered = [...(await namesOfTables()), ...KEPT_TABLES];
  expect(covered.sort()).toEqual(await tablesWith('tenant_id'));
  expect(Object.keys(MESSAGE_TABLES).sort()).toEqual(
    await tablesWith('message_id', 'dispatch_id', 'event_id', 'queue_id'),
  );
  const ofSessions = (await tablesWith('session_id', 'session_uuid')).filter((table) => !(table in MESSAGE_TABLES));
  expect(Object.keys(SESSION_TABLES).sort()).toEqual(ofSessions);
});

test('the rows of a tenant are found by an index in every table', async () => {
  const indexed = await database.column<string>(
    `SELECT DISTINCT i.indrelid::regclass::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
      WHERE a.attname = 'tenant_id' AND i.indpred IS NULL`,
  );
  const found = [...indexed, FOUND_BY_MESSAGE];
  expect((await namesOfTables()).filter((table) => !found.includes(table))).toEqual([]);
});

test('tables come after those that refer to them', () => {
  const table = (name: string, ...referenced_by: string[]) => ({ name, referenced_by });
  const sorted = childrenFirst([table('a', 'b', 'c'), table('b', 'c'), table('c')]);
  expect(sorted.map(({ name }) => name)).toEqual(['c', 'b', 'a']);
  expect(() => childrenFirst([table('a', 'a')])).toThrow(/circle/);
});

test('processes that die after every few transactions erase a tenant: each row is reported once, and the other tenant keeps all', async () => {
  const db = database.db();
  const tables = await namesOfTables();
  const checks = await database.column<string>(
    `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
      WHERE contype = 'c' AND connamespace = 'public'::regnamespace AND conislocal AND coninhcount = 0`,
  );
  for (const statement of checks) await database.query(statement);
  const [erased, other] = [await insertTenant(database), await insertTenant(database)];
  const filled = [...tables].reverse();
  for (const tenant of [erased, other]) {
    await fillTables(tenant, filled);
    await fillTables(tenant, ['input_decisions']);
  }
  // As accept_messages makes it of what every text column holds here.
  await database.query(
    "UPDATE idempotency_keys SET idempotency_key = idempotency_key('ten_' || tenant_id, 'ten_' || tenant_id, NULL, '', 'ten_' || tenant_id)",
  );
  await database.query("INSERT INTO event_cursors (consumer, position) VALUES ('alerts/' || $1, 1)", [erased]);
  await database.query("UPDATE input_decisions SET comment = 'private', ip = '10.0.0.1'");
  const workflowIds = [`message:${erased}:msg_1`, `message:${other}:msg_1`];
  for (const workflowId of workflowIds)
    await client.workflow.start('message', { workflowId, taskQueue: 'nobody', args: [] });
  const [gone = '', kept = ''] = workflowIds;
  cleanUp(async () => {
    await client.workflow.getHandle(kept).terminate();
  });
  await until(async () => (await client.workflow.count(`WorkflowId = "${gone}"`)).count === 1, { what: 'listing' });

  await deleteTenant(db, testAuthor(erased));
  const forgotten: string[] = [];
  const deps: EraserDeps = {
    db,
    log,
    bus: { keysOf: async () => [], forget: async (tenant) => void forgotten.push(tenant) },
    workflows: createWorkflowErasure(temporal),
    catchUpUsage: async () => true,
    cancel: async () => undefined,
    endSession: async () => undefined,
    leaseSeconds: 0,
    graceMs: 0,
  };
  let deaths = 0;
  for (let life = 0; !(await findErasure(db, erased))?.finished_at; life++) {
    // Due at once, and no longer waiting for the delivery in the queue, which nobody makes.
    await database.query(
      "UPDATE erasures SET next_at = now(), requested_at = now() - interval '1 hour' WHERE finished_at IS NULL",
    );
    await eraseNext(untilDeath(deps, 1 + (life % 17), life % 2 === 0)).catch((error: Error) => {
      expect(error.message).toBe('killed');
      deaths += 1;
    });
  }
  expect(deaths).toBeGreaterThan(10);

  for (const table of [...tables, 'tenants']) {
    const rows = await database.column(`SELECT DISTINCT right(tenant_id::text, 36) FROM ${table}`);
    expect({ table, of: rows }).toEqual({ table, of: [uuidOf(other)] });
  }
  const report = await findErasure(db, erased);
  const once = Object.fromEntries([...tables, 'tenants', 'input_decisions'].map((table) => [table, 1]));
  // Deleting the tenant has written an event and an entry of the audit, and so has the decision.
  expect(report?.removed).toEqual({ ...once, event_groups: 2, audit_entries: 3, workflows: 1, event_cursors: 1 });
  expect(new Set(forgotten)).toEqual(new Set([erased]));
  expect(await database.column('SELECT consumer FROM event_cursors')).not.toContain(`alerts/${erased}`);
  const decisions = await database.query(
    'SELECT comment, ip, digest FROM input_decisions ORDER BY comment NULLS FIRST',
  );
  expect(decisions).toEqual([
    { comment: null, ip: null, digest: erased },
    { comment: 'private', ip: '10.0.0.1', digest: other },
  ]);
  await expect(client.workflow.getHandle(gone).describe()).rejects.toThrow(/not found/);
  expect((await client.workflow.getHandle(kept).describe()).status.name).toBe('RUNNING');
});
