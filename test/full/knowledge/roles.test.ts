import { expect, test } from 'vitest';
import { ATTEMPTS_MAX } from '../../../knowledge/ingest/documents.js';
import { TestBase } from '../../knowledge/fixture.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { testProvider } from '../../setup/embeddings.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { until } from '../../setup/until.js';
import { expectAll, ingestAll, RECOVERY_MS, SOURCES, versionsOf } from './many-documents.js';

const redis = await redisServer();
const provider = await testProvider();
const shared = await startPlatform({ ...provider.env, REDIS_URL: redis.url });
await shared.platform.stop(); // it made the credential; from here on the roles run apart
const front = await shared.startPeer({ roles: 'api,mesh' });
let worker = await shared.startPeer({ roles: 'worker' });
let reader: TestPlatform;

test('documents wait for a process with the knowledge role', async () => {
  const base = await TestBase.create(front.client);
  const small = await base.ingest({ source_id: 'small', content: 'A small cranberry.' });
  expect(small).toMatchObject({ status: 'processing', async: true });
  expect((await base.job(small.job_id)).progress).toMatchObject({ phase: 'queued', percent: 0 });
  reader = await shared.startPeer({ roles: 'knowledge' });
  expect(await base.ended(small.job_id)).toMatchObject({ status: 'completed' });
  // With such a process a small text is there when the call answers, though it is taken in elsewhere.
  expect(await base.ingest({ source_id: 'next', content: 'A second cranberry.' })).toMatchObject({
    status: 'completed',
  });
}, 240_000);

test('500 documents and a single one are taken in once each, and none half, though the worker and the knowledge process are killed in the middle', async () => {
  const base = await TestBase.create(front.client);
  const query = (text: string, values: unknown[]) => shared.database.query(text, values);
  const written = async (least: number) => {
    const found = await until(
      async () => {
        const { sources, ...rest } = await versionsOf(query, base, 'only');
        return sources > least && { sources, ...rest };
      },
      { timeoutMs: RECOVERY_MS, what: `${least} documents` },
    );
    expect(found).toMatchObject({ mixed: 0 });
    expect(found.sources).toBeLessThan(SOURCES);
    return found.sources;
  };
  const single = await TestBase.create(front.client);
  const held = provider.hold('Third cranberry');
  const { job_id } = await single.ingest({ source_id: 'third', content: 'Third cranberry.' }, { wait: false });
  await held.held;
  const last = provider.hold('doc-4-99'); // so that both die in the middle, however quick they are
  const jobs = await ingestAll(base, 'only');
  const before = await written(20);
  await reader.kill9();
  held.open();
  reader = await shared.startPeer({ roles: 'knowledge' });
  await written(before + 20);
  await worker.kill9();
  worker = await shared.startPeer({ roles: 'worker' });
  last.open();
  expect(await single.ended(job_id, RECOVERY_MS)).toMatchObject({ status: 'completed', result: { created: 1 } });
  expect(await single.texts('third cranberry', { top_k: 1 })).toEqual(['Third cranberry.']);
  await expectAll(query, base, jobs, { version: 'only', result: 'created' });
}, 500_000);

test('a document whose last attempt ends its process is given up, and the others of its job go on', async () => {
  const base = await TestBase.create(front.client);
  const held = provider.hold('Deadly cranberry');
  const documents = [
    { source_id: 'deadly', content: 'Deadly cranberry.' },
    { source_id: 'harmless', content: 'Harmless cranberry.' },
  ];
  const { job_id } = await base.ingest({ documents }, { wait: false });
  await held.held;
  await shared.database.query(
    `UPDATE knowledge_documents SET attempts = $2 WHERE job_id = $1 AND source_id = 'deadly'`,
    [job_id, ATTEMPTS_MAX],
  );
  await reader.kill9();
  reader = await shared.startPeer({ roles: 'knowledge' });
  // The provider still holds it: it is not begun a seventh time.
  const job = await base.ended(job_id, RECOVERY_MS);
  held.open();
  expect(job.sources.map(({ source_id, status, error }) => [source_id, status, error?.code])).toEqual([
    ['deadly', 'failed', 'INTERNAL'],
    ['harmless', 'completed', undefined],
  ]);
}, 240_000);
