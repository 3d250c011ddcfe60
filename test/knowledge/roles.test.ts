import { beforeAll, expect, test } from 'vitest';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import type { TestPlatform } from '../setup/platform/platform-process.js';
import { TestBase, type TestProvider, testProvider } from './fixture.js';

let shared: SharedPlatform;
let provider: TestProvider;
let front: TestPlatform;
beforeAll(async () => {
  provider = await testProvider();
  shared = await startPlatform(provider.env);
  await shared.platform.stop(); // it made the credential; from here on the roles run apart
  front = await shared.startPeer({ roles: 'api,mesh,worker' });
  return async () => {
    await shared.dispose();
    provider.close();
  };
}, 120_000);

test('documents wait for a process with the knowledge role, and outlive one that dies', async () => {
  const base = await TestBase.create(front.client);
  const small = await base.ingest({ source_id: 'small', content: 'A small cranberry.' });
  expect(small).toMatchObject({ status: 'processing', async: true });
  expect((await base.job(small.job_id)).progress).toMatchObject({ phase: 'queued', percent: 0 });
  const first = await shared.startPeer({ roles: 'knowledge' });
  expect(await base.ended(small.job_id)).toMatchObject({ status: 'completed' });
  // With such a process a small text is there when the call answers, though it is taken in elsewhere.
  expect(await base.ingest({ source_id: 'next', content: 'A second cranberry.' })).toMatchObject({
    status: 'completed',
  });
  const held = provider.hold('Third cranberry');
  const { job_id } = await base.ingest({ source_id: 'third', content: 'Third cranberry.' }, { wait: false });
  await held.held;
  await first.kill9();
  held.open();
  await shared.startPeer({ roles: 'knowledge' });
  expect(await base.ended(job_id, 120_000)).toMatchObject({ status: 'completed', result: { created: 1 } });
  expect(await base.texts('third cranberry', { top_k: 1 })).toEqual(['Third cranberry.']);
}, 240_000);
