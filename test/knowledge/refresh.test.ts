import type { ServerResponse } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { IngestResponse, Sources } from '../../contracts/api/knowledge/knowledge.js';
import { ok } from '../../contracts/primitives.js';
import { httpServer } from '../runtime/loopback-server.js';
import { makeStale, platformWithProvider, TestBase } from './fixture.js';

const fixture = platformWithProvider();
let base: TestBase;
beforeEach(async () => {
  base = await TestBase.create(fixture.shared.platform.client);
});

const ingest = (content: string, more: { tags?: string[]; wait?: boolean } = {}) => {
  const { tags = [], wait = true } = more;
  return base.ingest({ source_id: 'page', content, tags }, { wait });
};
const refresh = async (more: object = {}): Promise<string> =>
  (await base.ok('refresh', more, IngestResponse.pick({ job_id: true }))).job_id;
const sources = async () => (await base.ok('get_sources', {}, Sources)).sources;

/** The address of a page that says something else from the second time on. */
async function servePage(first: (response: ServerResponse) => void, then: (response: ServerResponse) => void) {
  let asked = 0;
  const { url } = await httpServer((_, response) => (asked++ === 0 ? first : then)(response));
  return url;
}

test('a refresh that finds a source current does not defeat a call that was made before it', async () => {
  await ingest('Old cassava.');
  const held = fixture.provider.hold('New cassava');
  const { job_id } = await ingest('New cassava.', { wait: false });
  await held.held;
  expect(await base.ended(await refresh())).toMatchObject({ status: 'completed', result: { unchanged: 1 } });
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await base.texts('cassava')).toEqual(['New cassava.']);
});

test('a refresh that embeds a source anew does not defeat a call that was made before it', async () => {
  await ingest('Old yam.');
  const held = fixture.provider.hold('New yam');
  const { job_id } = await ingest('New yam.', { wait: false });
  await held.held;
  expect(await base.ended(await refresh({ force: true }))).toMatchObject({ result: { updated: 1 } });
  expect(await base.texts('yam')).toEqual(['Old yam.']);
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await base.texts('yam')).toEqual(['New yam.']);
});

test('a version that is written while a refresh embeds the one before stays', async () => {
  await ingest('Old taro.');
  const held = fixture.provider.hold('Old taro');
  const job_id = await refresh({ force: true });
  await held.held;
  await ingest('New taro.', { tags: ['new'] });
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { failed: 0 } });
  expect(await base.texts('taro')).toEqual(['New taro.']);
  expect(await sources()).toMatchObject([{ tags: ['new'] }]);
});

test('tags that are written while a refresh embeds a source stay', async () => {
  await ingest('Tagged jicama.', { tags: ['old'] });
  const held = fixture.provider.hold('Tagged jicama');
  const job_id = await refresh({ force: true });
  await held.held;
  expect((await ingest('Tagged jicama.', { tags: ['new'] })).sources[0]?.result).toBe('updated');
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await sources()).toMatchObject([{ tags: ['new'] }]);
});

test('a source that is deleted while a refresh embeds it does not come back', async () => {
  await ingest('Deleted oca.');
  const held = fixture.provider.hold('Deleted oca');
  const job_id = await refresh({ force: true });
  await held.held;
  await base.ok('delete_source', { source_id: 'page' }, ok({}));
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'SOURCE_DELETED' } });
  expect(await sources()).toEqual([]);
});

test('a source whose deletion did not see the refresh does not come back either', async () => {
  await ingest('Missed oca.');
  const held = fixture.provider.hold('Missed oca');
  const job_id = await refresh({ force: true });
  await held.held;
  // What a deletion does that canceled the source's documents a moment before those of the refresh were written.
  await fixture.shared.database.query('DELETE FROM knowledge_sources WHERE namespace = $1', [base.namespace]);
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'SOURCE_DELETED' } });
  expect(await sources()).toEqual([]);
});

test.each<[string, (response: ServerResponse) => void]>([
  ['is gone', (response) => response.writeHead(404).end()],
  ['is a picture now', (response) => response.end(Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'))],
  ['is empty now', (response) => response.end('')],
])('a stale source whose page %s is embedded anew from what was read of it', async (_, then) => {
  const url = await servePage((response) => response.end('Stale mashua.'), then);
  await base.ingest({ source_id: 'page', url }, { wait: true });
  await makeStale(fixture.shared.database, base);
  expect(await sources()).toMatchObject([{ stale: true }]);
  expect(await base.ended(await refresh())).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await sources()).toMatchObject([{ stale: false }]);
  expect(await base.ended(await refresh())).toMatchObject({ status: 'failed' });
  expect(await base.texts('mashua')).toEqual(['Stale mashua.']);
});
