import { expect, onTestFinished, test } from 'vitest';
import { deleteTenant } from '../../auth/tenants.js';
import { Bases, NewKnowledgeBaseResponse } from '../../contracts/api/knowledge/knowledge.js';
import { ok } from '../../contracts/primitives.js';
import { purgeDeletedBases } from '../../knowledge/base-deletion.js';
import { createKnowledgePurge, deleteOldJobs } from '../../knowledge/ingest/job-starter.js';
import { createLogger } from '../../runtime/logger.js';
import { serveApi } from '../api/served-api.js';
import { testAuthor } from '../setup/author.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { TestBase } from './fixture.js';

const api = await serveApi();
const create = (more?: object) => TestBase.create(api.client, more);
const Base = NewKnowledgeBaseResponse.pick({ knowledge_base: true });

test('changes that are made at the same time are all made', async () => {
  const base = await create();
  const locked = 'SELECT 1 FROM knowledge_bases WHERE namespace = $1';
  const lock = await RowLock.on(api.database.url, locked, [base.namespace]);
  const changes = [
    { visibility: 'private' },
    { description: 'd' },
    { config: { top_k: 7 } },
    { config: { min_score: 0.5 } },
  ];
  const changing = changes.map((change) => base.ok('update', change, Base));
  await until(async () => (await lock.waiters()) > 0, { what: 'a change that waits' });
  await lock.release();
  await Promise.all(changing);
  const all = { visibility: 'private', description: 'd', config: { top_k: 7, min_score: 0.5 } };
  expect((await base.ok('get_by_id', {}, Base)).knowledge_base).toMatchObject(all);
});

test('a source has the time at which it was taken in first, in every answer', async () => {
  const base = await create();
  const first = (await base.ingest({ source_id: 'a', content: 'Old skirret.' })).sources[0];
  const again = await base.ingest({ source_id: 'a', content: 'New skirret.' });
  const [listed] = await base.sources();
  expect(first?.created_at).toBe(listed?.created_at);
  expect(again.sources[0]?.created_at).toBe(listed?.created_at);
  expect((await base.job(again.job_id)).sources[0]?.created_at).toBe(listed?.created_at);
});

test('a base whose rows cannot be deleted at once is deleted all the same, and they go later, with the database alone', async () => {
  // Has every deletion of a job fail, which is how a purge begins.
  await api.database.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
    CREATE TRIGGER refuse BEFORE DELETE ON knowledge_jobs FOR EACH ROW EXECUTE FUNCTION refuse()`);
  const mend = () => api.database.query('DROP FUNCTION IF EXISTS refuse CASCADE');
  onTestFinished(async () => void (await mend()));
  const base = await create();
  const { namespace } = base;
  const rows = async () =>
    (await api.database.query('SELECT 1 FROM knowledge_bases WHERE namespace = $1', [namespace])).length;
  await base.ingest({ content: 'Refused salsify.' });
  await base.ok('delete', {}, ok({}));
  expect(await api.client.failure('/knowledge_base/query', { namespace, query: 'salsify' })).toBe('404 NOT_FOUND');
  await expect(purgeDeletedBases(api.database.db())).rejects.toThrow('no');
  expect(await rows()).toBe(1);
  await mend();
  const purge = createKnowledgePurge(api.database.db(), 7, createLogger({ level: 'silent' }));
  onTestFinished(() => purge.stop());
  purge.start();
  expect(await until(async () => (await rows()) === 0, { what: 'the end of the rows' })).toBe(true);
});

test('a private base is there for its maker and the scope full, and for nobody else', async () => {
  const maker = await api.clientOf(api.tenantId, ['full']);
  const reader = await api.clientOf(api.tenantId, ['read']);
  const base = await TestBase.create(maker, { visibility: 'private', documents: [{ content: 'A private truffle.' }] });
  const { namespace } = base;
  for (const operation of ['get_by_id', 'get_sources', 'get_stats']) {
    expect(await reader.failure(`/knowledge_base/${operation}`, { namespace })).toBe('404 NOT_FOUND');
    expect(await api.client.failure(`/knowledge_base/${operation}`, { namespace })).toBe('200');
  }
  expect(await reader.failure('/knowledge_base/query', { namespace, query: 'truffle' })).toBe('404 NOT_FOUND');
  const names = async (of: ApiClient) =>
    (await of.ok('/knowledge_base/get', { page_size: 100 }, Bases)).knowledge_bases.map((one) => one.namespace);
  expect(await names(api.client)).toContain(namespace);
  expect(await names(reader)).not.toContain(namespace);
  expect(await reader.failure('/knowledge_base/new', { namespace: 'mine' })).toBe('403 forbidden');
  await base.ok('update', { visibility: 'tenant' }, Base);
  expect(await names(reader)).toContain(namespace);
});

/** A caller of another tenant. */
async function stranger(): Promise<{ client: ApiClient; tenantId: string }> {
  const tenantId = await api.otherTenant();
  return { client: await api.clientOf(tenantId, ['full']), tenantId };
}

test('two tenants with bases, sources and contents of the same names never meet', async () => {
  const named = { namespace: 'shared-name' };
  const bases = [api.client, (await stranger()).client].map((client) => TestBase.of(client, named.namespace));
  for (const [place, { client }] of bases.entries()) {
    const documents = [{ source_id: 'a', content: `Gooseberry of tenant ${place}.` }];
    const made = await client.post('/knowledge_base/new', { ...named, documents });
    expect(made.body).toMatchObject({ status: 'completed' });
  }
  const [mine, theirs] = bases as [TestBase, TestBase];
  expect(await mine.texts('gooseberry')).toEqual(['Gooseberry of tenant 0.']);
  expect(await theirs.texts('gooseberry')).toEqual(['Gooseberry of tenant 1.']);
  await theirs.ok('delete', {}, ok({}));
  expect(await mine.texts('gooseberry')).toEqual(['Gooseberry of tenant 0.']);
  expect(await theirs.client.failure('/knowledge_base/query', { ...named, query: 'x' })).toBe('404 NOT_FOUND');
});

test('a tenant that is deleted leaves no knowledge behind', async () => {
  const { client, tenantId } = await stranger();
  const base = await TestBase.create(client);
  await base.ingest({ content: 'Forgotten words.' });
  const kept = await TestBase.create(api.client, { documents: [{ content: 'Kept words.' }] });
  await deleteTenant(api.database.db(), testAuthor(tenantId));
  await purgeDeletedBases(api.database.db());
  for (const table of ['bases', 'sources', 'chunks', 'jobs', 'documents']) {
    const rows = await api.database.query(`SELECT 1 FROM knowledge_${table} WHERE tenant_id = $1`, [tenantId]);
    expect([table, rows.length]).toEqual([table, 0]);
  }
  expect(await kept.texts('kept words')).toEqual(['Kept words.']);
});

test('jobs go when they ended longer ago than they are kept; what they took in stays', async () => {
  const base = await create();
  const [old, recent] = [await base.ingest({ content: 'Old words.' }), await base.ingest({ content: 'Recent words.' })];
  await api.database.query(`UPDATE knowledge_jobs SET ended_at = now() - interval '49 hours' WHERE job_id = $1`, [
    old.job_id,
  ]);
  await deleteOldJobs(api.database.db(), 3);
  expect(await base.job(old.job_id)).toMatchObject({ status: 'completed' });
  await deleteOldJobs(api.database.db(), 2);
  expect(await api.client.failure('/knowledge_base/get_status', { job_id: old.job_id })).toBe('404 NOT_FOUND');
  expect(await base.job(recent.job_id)).toMatchObject({ status: 'completed' });
  expect((await base.texts('words')).sort()).toEqual(['Old words.', 'Recent words.']);
});

test('large calls have their bounds in each process, which one tenant cannot use up', async () => {
  const { client: other } = await stranger();
  const namespace = 'large-calls';
  for (const client of [api.client, other])
    expect((await client.post('/knowledge_base/new', { namespace })).status).toBe(200);
  const large = { namespace, content: 'word '.repeat(400_000) };
  const statuses = async (client: ApiClient, times: number) =>
    Promise.all(Array.from({ length: times }, async () => (await client.post('/knowledge_base/ingest', large)).status));
  const [mine, theirs] = await Promise.all([statuses(api.client, 12), statuses(other, 1)]);
  expect(mine).toContain(429);
  expect(mine).toContain(200);
  expect(theirs).toEqual([200]);
  expect(await statuses(api.client, 1)).toEqual([200]);
  const small = { namespace, content: 'Small words.' };
  expect((await api.client.post('/knowledge_base/ingest', small)).body).toMatchObject({ status: 'completed' });
});
