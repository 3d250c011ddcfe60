import { beforeEach, expect, test } from 'vitest';
import { ok } from '../../contracts/primitives.js';
import { apiWithProvider, TestBase } from './fixture.js';

const { api, provider } = await apiWithProvider();
let base: TestBase;
beforeEach(async () => {
  base = await TestBase.create(api.client);
});

const ingest = (content: string, more: { tags?: string[]; wait?: boolean } = {}) => {
  const { tags = [], wait = true } = more;
  return base.ingest({ source_id: 'page', content, tags }, { wait });
};
/** A forced refresh that embeds this text, held until `open`. */
async function heldRefresh(text: string): Promise<{ job_id: string; open: () => void }> {
  const { held, open } = provider.hold(text);
  const job_id = await base.refresh({ force: true });
  await held;
  return { job_id, open };
}

test.each<[string, object, object]>([
  ['finds a source current', {}, { unchanged: 1 }],
  ['embeds a source anew', { force: true }, { updated: 1 }],
])('a refresh that %s does not defeat a call that was made before it', async (_what, more, result) => {
  await ingest('Old cassava.');
  const held = provider.hold('New cassava');
  const { job_id } = await ingest('New cassava.', { wait: false });
  await held.held;
  expect(await base.ended(await base.refresh(more))).toMatchObject({ status: 'completed', result });
  expect(await base.texts('cassava')).toEqual(['Old cassava.']);
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await base.texts('cassava')).toEqual(['New cassava.']);
});

test('a version that is written while a refresh embeds the one before stays', async () => {
  await ingest('Old taro.');
  const { job_id, open } = await heldRefresh('Old taro');
  await ingest('New taro.', { tags: ['new'] });
  open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { failed: 0 } });
  expect(await base.texts('taro')).toEqual(['New taro.']);
  expect(await base.sources()).toMatchObject([{ tags: ['new'] }]);
});

test('tags that are written while a refresh embeds a source stay', async () => {
  await ingest('Tagged jicama.', { tags: ['old'] });
  const { job_id, open } = await heldRefresh('Tagged jicama');
  expect((await ingest('Tagged jicama.', { tags: ['new'] })).sources[0]?.result).toBe('updated');
  open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await base.sources()).toMatchObject([{ tags: ['new'] }]);
});

test.each<[string, () => Promise<unknown>]>([
  ['is deleted while a refresh embeds it', () => base.ok('delete_source', { source_id: 'page' }, ok({}))],
  [
    // A deletion that canceled the source's documents a moment before those of the refresh were written.
    'whose deletion did not see the refresh',
    () => api.database.query('DELETE FROM knowledge_sources WHERE namespace = $1', [base.namespace]),
  ],
])('a source that %s does not come back', async (_what, remove) => {
  await ingest('Deleted oca.');
  const { job_id, open } = await heldRefresh('Deleted oca');
  await remove();
  open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'SOURCE_DELETED' } });
  expect(await base.sources()).toEqual([]);
});
