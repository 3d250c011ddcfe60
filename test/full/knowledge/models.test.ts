import { expect, test } from 'vitest';
import { Stats } from '../../../contracts/api/knowledge/knowledge.js';
import { TestBase } from '../../knowledge/fixture.js';
import { type TestProvider, testProvider } from '../../setup/embeddings.js';
import { startPlatform } from '../../setup/platform/platform.js';

const shared = await startPlatform((await testProvider('words-1', 64)).env);
let current = shared.platform;

/** The base, asked through a platform that was started again with another provider. */
async function restartedWith({ env }: TestProvider, base: TestBase): Promise<TestBase> {
  await current.stop();
  current = await shared.startPeer({ env });
  return TestBase.of(current.client, base.namespace);
}

const stats = async (base: TestBase) => (await base.ok('get_stats', {}, Stats)).stats;
const stale = async (base: TestBase) =>
  (await base.sources()).flatMap((source) => (source.stale ? source.source_id : [])).sort();
const refreshed = async (base: TestBase) => base.ended(await base.refresh());

test('a platform that is started again with another model, or one of other dimensions, finds its chunks stale until a refresh', async () => {
  let base = await TestBase.create(current.client);
  const document = (name: string) => ({ source_id: name, content: `The ${name} chervil.` });
  await base.ingest({ documents: [document('a'), document('b')] });
  expect(await stats(base)).toMatchObject({ embedding_model: 'words-1', dimensions: 64, stale_chunks: 0 });

  // Of the same name, with other dimensions, which the platform has to ask for.
  const shorter = await testProvider('words-1', 48);
  base = await restartedWith(shorter, base);
  expect(await stats(base)).toMatchObject({ embedding_model: 'words-1', dimensions: 48, stale_chunks: 2 });
  expect(await stale(base)).toEqual(['a', 'b']);
  expect(await base.query('chervil')).toMatchObject({ mode_used: 'lexical', results: [{}, {}] });
  expect((await base.ingest(document('a'))).sources[0]?.result).toBe('updated');
  expect(await stale(base)).toEqual(['b']);
  expect(await base.query('chervil')).toMatchObject({ mode_used: 'hybrid' });
  expect(await refreshed(base)).toMatchObject({ result: { updated: 1, unchanged: 1 } });
  expect(await stats(base)).toMatchObject({ stale_chunks: 0 });

  base = await restartedWith(await testProvider('words-2', 48), base);
  expect(await base.query('chervil')).toMatchObject({ mode_used: 'lexical', results: [{}, {}] });
  expect(await stats(base)).toMatchObject({ embedding_model: 'words-2', dimensions: 48, stale_chunks: 2 });
  expect(await refreshed(base)).toMatchObject({ result: { updated: 2 } });
  expect(await base.query('chervil')).toMatchObject({ mode_used: 'hybrid', results: [{}, {}] });

  // A refresh is the first thing that a platform does which knows no more of its provider than the name.
  base = await restartedWith(await testProvider('words-2', 40), base);
  expect(await refreshed(base)).toMatchObject({ result: { updated: 2 } });

  // Nobody can say how many dimensions a provider has that fails.
  const failing = await testProvider('words-2', 40);
  failing.fail('');
  base = await restartedWith(failing, base);
  expect(await stats(base)).toMatchObject({ embedding_model: 'words-2', dimensions: null, stale_chunks: 0 });
  expect(await stale(base)).toEqual([]);
}, 240_000);
