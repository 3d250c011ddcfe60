import { expect, onTestFinished, test } from 'vitest';
import { NewKnowledgeBaseResponse, Sources } from '../../contracts/api/knowledge/knowledge.js';
import { ok } from '../../contracts/primitives.js';
import { purgeDeletedBases } from '../../knowledge/base-deletion.js';
import { createKnowledgePurge } from '../../knowledge/ingest/job-starter.js';
import { createLogger } from '../../runtime/logger.js';
import { serveApi } from '../api/served-api.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { TestBase } from './fixture.js';

const api = await serveApi();
const create = (more?: object) => TestBase.create(api.client, more);
const Base = NewKnowledgeBaseResponse.pick({ knowledge_base: true });
const rowsOf = async ({ namespace }: TestBase) =>
  (await api.database.query('SELECT 1 FROM knowledge_bases WHERE namespace = $1', [namespace])).length;

test('changes that are made at the same time are all made', async () => {
  const base = await create();
  const lock = await RowLock.on(api.database.url, 'SELECT 1 FROM knowledge_bases WHERE namespace = $1', [
    base.namespace,
  ]);
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
  expect((await base.ok('get_by_id', {}, Base)).knowledge_base).toMatchObject({
    visibility: 'private',
    description: 'd',
    config: { top_k: 7, min_score: 0.5 },
  });
});

test('a source has the time at which it was taken in first, in every answer', async () => {
  const base = await create();
  const first = (await base.ingest({ source_id: 'a', content: 'Old skirret.' })).sources[0];
  const again = await base.ingest({ source_id: 'a', content: 'New skirret.' });
  const [listed] = (await base.ok('get_sources', {}, Sources)).sources;
  expect(first?.created_at).toBe(listed?.created_at);
  expect(again.sources[0]?.created_at).toBe(listed?.created_at);
  expect((await base.job(again.job_id)).sources[0]?.created_at).toBe(listed?.created_at);
});

/** Has every deletion of a job fail, which is how a purge begins. */
async function failPurges(): Promise<() => Promise<void>> {
  await api.database.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
    CREATE TRIGGER refuse BEFORE DELETE ON knowledge_jobs FOR EACH ROW EXECUTE FUNCTION refuse()`);
  const mend = async (): Promise<void> => {
    await api.database.query('DROP FUNCTION IF EXISTS refuse CASCADE');
  };
  onTestFinished(mend);
  return mend;
}

test('a base whose rows cannot be deleted at once is deleted all the same, and they go later', async () => {
  const base = await create();
  await base.ingest({ content: 'Refused salsify.' });
  const mend = await failPurges();
  await base.ok('delete', {}, ok({}));
  const { namespace } = base;
  expect(await api.client.failure('/knowledge_base/query', { namespace, query: 'salsify' })).toBe('404 NOT_FOUND');
  expect(await rowsOf(base)).toBe(1);
  await expect(purgeDeletedBases(api.database.db())).rejects.toThrow('no');
  await mend();
  await purgeDeletedBases(api.database.db());
  expect(await rowsOf(base)).toBe(0);
});

test('what was deleted goes with the database alone', async () => {
  const base = await create();
  const mend = await failPurges();
  await base.ingest({ content: 'Left salsify.' });
  await base.ok('delete', {}, ok({}));
  await mend();
  const purge = createKnowledgePurge(api.database.db(), 7, createLogger({ level: 'silent' }));
  onTestFinished(() => purge.stop());
  purge.start();
  expect(await until(async () => (await rowsOf(base)) === 0, { what: 'the end of the rows' })).toBe(true);
});
