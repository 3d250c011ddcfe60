import { expect, test } from 'vitest';
import { listAudit } from '../../audit/audit-list.js';
import { deleteOldEntries } from '../../audit/audit-retention.js';
import { platformAuthor, recordAudit } from '../../audit/record-audit.js';
import type { Caller } from '../../contracts/api/auth.js';
import { AUDIT_OPERATIONS } from '../../contracts/api/tenants/audit.js';
import type { Tx } from '../../db/pool.js';
import { insertTenant, TEST_SECRETS } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { gate } from '../setup/until.js';

const database = await freshDatabase();
const db = database.db();

const callerOf = (tenant_id: string): Caller => ({
  ...{ tenant_id, agent_type: 'credential', scopes: ['admin'], sub: 'cred_1', credential_id: 'cred_1', iat: 0, exp: 0 },
});
const list = (tenant_id: string, request: object) =>
  listAudit({ db, secrets: TEST_SECRETS }, callerOf(tenant_id), AUDIT_OPERATIONS.getAudit.request.parse(request));
const record = (tx: Tx, tenant_id: string, id: string) =>
  recordAudit(tx, platformAuthor(tenant_id, 'test'), { action: 'policy.delete', target: { type: 'policy', id } });
const targets = ({ entries }: Awaited<ReturnType<typeof list>>) => entries.map(({ target }) => target.id);

test('a cursor skips no entry that was written before it and commits after it', async () => {
  const tenant = await insertTenant(database);
  const [written, commit] = [gate(), gate()];
  const late = db.tenant(tenant, async (tx) => {
    await record(tx, tenant, 'late');
    written.open();
    await commit.promise;
  });
  await written.promise;
  await db.tenant(tenant, (tx) => record(tx, tenant, 'early'));
  const first = await list(tenant, { sort: 'oldest' });
  expect(targets(first)).toEqual(['early']);
  commit.open();
  await late;
  const second = await list(tenant, { sort: 'oldest', cursor: first.next_cursor });
  expect(targets(second)).toEqual(['late']);
  expect(targets(await list(tenant, { sort: 'oldest', cursor: second.next_cursor }))).toEqual([]);
  expect(targets(await list(tenant, {}))).toEqual(['late', 'early']);
});

test('an entry is written with its change or not at all', async () => {
  const tenant = await insertTenant(database);
  const failing = db.tenant(tenant, async (tx) => {
    await record(tx, tenant, 'undone');
    throw new Error('undo');
  });
  await expect(failing).rejects.toThrow('undo');
  await db.tenant(tenant, (tx) => record(tx, tenant, 'done'));
  expect(targets(await list(tenant, {}))).toEqual(['done']);
});

test('filters, pages, and a cursor that counts for its list and caller only', async () => {
  const tenant = await insertTenant(database);
  await db.tenant(tenant, async (tx) => {
    for (const id of ['a', 'b', 'c']) await record(tx, tenant, id);
    const target = { type: 'guard', id: 'path' };
    await recordAudit(tx, platformAuthor(tenant, 'other'), { action: 'guard.update', target });
  });
  expect(targets(await list(tenant, { action: 'policy.*' }))).toEqual(['c', 'b', 'a']);
  expect(targets(await list(tenant, { action: 'policy.delete', target: 'b' }))).toEqual(['b']);
  expect(targets(await list(tenant, { principal: 'other' }))).toEqual(['path']);
  expect(targets(await list(tenant, { to: '2020-01-01T00:00:00Z' }))).toEqual([]);
  const page = await list(tenant, { page_size: 3 });
  const rest = await list(tenant, { page_size: 3, cursor: page.next_cursor });
  expect([targets(page), targets(rest), rest.next_cursor]).toEqual([['path', 'c', 'b'], ['a'], undefined]);
  await expect(list(tenant, { action: 'guard.*', cursor: page.next_cursor })).rejects.toThrow(/cursor/);
  const other = await insertTenant(database);
  expect(targets(await list(other, {}))).toEqual([]);
  await expect(list(other, { page_size: 3, cursor: page.next_cursor })).rejects.toThrow(/cursor/);
});

test('no role of a tenant changes or deletes an entry', async () => {
  const tenant = await insertTenant(database);
  await db.tenant(tenant, (tx) => record(tx, tenant, 'kept'));
  for (const sql of ['DELETE FROM audit_entries', "UPDATE audit_entries SET principal_id = 'x'"])
    await expect(db.tenant(tenant, (tx) => tx.query(sql))).rejects.toMatchObject({ code: '42501' });
});

test('entries older than the retention go, and the positions after them stay', async () => {
  const tenant = await insertTenant(database);
  await db.tenant(tenant, (tx) => record(tx, tenant, 'old'));
  await database.query("UPDATE audit_entries SET at = now() - interval '31 days' WHERE target_id = 'old'");
  const before = await list(tenant, { sort: 'oldest' });
  await deleteOldEntries(db, 30);
  expect(targets(await list(tenant, {}))).toEqual([]);
  await db.tenant(tenant, (tx) => record(tx, tenant, 'new'));
  expect(targets(await list(tenant, { sort: 'oldest', cursor: before.next_cursor }))).toEqual(['new']);
});
