// @module-tag once
import { expect, test } from 'vitest';
import { deleteTenant } from '../../auth/tenants.js';
import { purgeDeletedBases } from '../../knowledge/base-deletion.js';
import { deleteOldJobs } from '../../knowledge/ingest/job-starter.js';
import { serveApi } from '../api/served-api.js';
import { ApiClient } from '../setup/platform/api-client.js';
import { TestBase } from './fixture.js';

const api = await serveApi();

/** A caller of another tenant. */
async function stranger(): Promise<{ client: ApiClient; tenantId: string }> {
  const tenantId = await api.otherTenant();
  const credential = await api.credentialOf(tenantId, ['full']);
  return { client: new ApiClient({ devJson: () => ({ base_url: api.baseUrl, ...credential }) }, credential), tenantId };
}

test('two tenants with bases, sources and contents of the same names never meet', async () => {
  const { client: other } = await stranger();
  const bases = [api.client, other].map((client) => ({ client, namespace: 'shared-name' }));
  for (const [place, { client, namespace }] of bases.entries()) {
    const documents = [{ source_id: 'a', content: `Gooseberry of tenant ${place}.` }];
    expect((await client.post('/knowledge_base/new', { namespace, documents })).body).toMatchObject({
      status: 'completed',
    });
  }
  const texts = async ({ client, namespace }: (typeof bases)[number]) => {
    const { body } = await client.post('/knowledge_base/query', { namespace, query: 'gooseberry', min_score: 0 });
    return (body as { results: { text: string }[] }).results.map(({ text }) => text);
  };
  expect(await Promise.all(bases.map(texts))).toEqual([['Gooseberry of tenant 0.'], ['Gooseberry of tenant 1.']]);
  expect((await other.post('/knowledge_base/delete', { namespace: 'shared-name' })).status).toBe(200);
  expect(await texts(bases[0] as (typeof bases)[number])).toEqual(['Gooseberry of tenant 0.']);
  expect((await other.post('/knowledge_base/query', { namespace: 'shared-name', query: 'gooseberry' })).status).toBe(
    404,
  );
});

test('a tenant that is deleted leaves no knowledge behind', async () => {
  const { client, tenantId } = await stranger();
  const base = await TestBase.create(client);
  await base.ingest({ content: 'Forgotten words.' });
  const kept = await TestBase.create(api.client, { documents: [{ content: 'Kept words.' }] });
  await deleteTenant(api.database.db(), tenantId, 'test');
  await purgeDeletedBases(api.database.db());
  for (const table of ['bases', 'sources', 'chunks', 'jobs', 'documents']) {
    const rows = await api.database.query(`SELECT 1 FROM knowledge_${table} WHERE tenant_id = $1`, [tenantId]);
    expect([table, rows.length]).toEqual([table, 0]);
  }
  expect(await kept.texts('kept words')).toEqual(['Kept words.']);
});

test('jobs go when they ended longer ago than they are kept; what they took in stays', async () => {
  const base = await TestBase.create(api.client);
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
