import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { JobResponse } from '../../../contracts/api/knowledge/knowledge.js';
import type { Outbound } from '../../../http/outbound.js';
import { OutboundError } from '../../../http/outbound-error.js';
import { fetchUrl } from '../../../knowledge/ingest/fetch-url.js';
import { apiWithProvider, makeStale, TestBase } from '../../knowledge/fixture.js';
import { httpServer } from '../../runtime/loopback-server.js';
import { gate } from '../../setup/until.js';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const { api } = await apiWithProvider();
const create = () => TestBase.create(api.client);
const missing: Answer = (response) => response.writeHead(404).end();
/** What the web server says at each path. */
const pages: Record<string, Answer> = {};
const { url: site } = await httpServer((request, response) => {
  const answer = pages[request.url ?? ''] ?? missing;
  answer(response, request);
});

const html =
  (text: string): Answer =>
  (response) =>
    response.setHeader('content-type', 'text/html').end(`<html><title>Page</title><p>${text}</p></html>`);
const redirect =
  (location: string): Answer =>
  (response) =>
    response.writeHead(302, { location }).end();
const picture: Answer = (response) => response.end(Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'));
/** Says what is there unless the caller has it. */
const tagged =
  (etag: string, answer: Answer): Answer =>
  (response, request) => {
    response.setHeader('etag', etag);
    if (request.headers['if-none-match'] === etag) response.writeHead(304).end();
    else answer(response, request);
  };
const refreshed = async (base: TestBase): Promise<JobResponse> => base.ended(await base.refresh());

test('a page is read, cited by its address, and refreshed by its ETag', async () => {
  let version = 1;
  const asked: (string | undefined)[] = [];
  pages['/moved'] = redirect('/news');
  pages['/news'] = (response, request) => {
    asked.push(request.headers['if-none-match']);
    tagged(`"v${version}"`, html(`News of version ${version}.`))(response, request);
  };
  const base = await create();
  const url = `${site}/moved`;
  const answer = await base.ingest({ url }, { wait: true });
  expect(answer).toMatchObject({ status: 'completed', sources: [{ result: 'created' }] });
  const [found] = (await base.query('news version')).results;
  expect(found).toMatchObject({ title: 'Page', text: 'News of version 1.', citation: { url } });
  expect((await base.ingest({ url }, { wait: true })).sources[0]?.result).toBe('unchanged');
  expect(await refreshed(base)).toMatchObject({ result: { unchanged: 1, updated: 0 } });
  version = 2;
  expect(await refreshed(base)).toMatchObject({ result: { updated: 1 } });
  expect(await base.texts('news version')).toEqual(['News of version 2.']);
  expect(asked).toEqual([undefined, '"v1"', '"v1"', '"v1"']);
  // A page that is gone keeps what was read of it.
  delete pages['/news'];
  expect(await refreshed(base)).toMatchObject({ status: 'failed', error: { code: 'FETCH_FAILED' } });
  expect(await base.texts('news version')).toEqual(['News of version 2.']);
});

test('a page that is read again is read as its caller said, and has the title that it has now', async () => {
  let version = 1;
  pages['/notes'] = (response) => {
    response
      .setHeader('content-type', 'text/plain')
      .end(`# Version ${version}\n\n## Seals\n\nSeals of version ${version}.`);
  };
  const base = await create();
  const page = { url: `${site}/notes`, content_type: 'text/markdown' };
  const documents = [
    { ...page, source_id: 'named', title: 'My notes' },
    { ...page, source_id: 'found' },
  ];
  await base.ingest({ documents }, { wait: true });
  const shown = async () => {
    const sources = await base.sources();
    const headings = (await base.query('seals')).results.map(({ citation }) => citation.heading_path[0]);
    const titles = sources.map(({ source_id, title, content_type }) => [source_id, title, content_type]).sort();
    return { titles, headings };
  };
  const expected = () => ({
    titles: [
      ['found', `Version ${version}`, 'text/markdown'],
      ['named', 'My notes', 'text/markdown'],
    ],
    headings: [`Version ${version}`, `Version ${version}`],
  });
  expect(await shown()).toEqual(expected());
  expect(await refreshed(base)).toMatchObject({ result: { unchanged: 2 } });
  version = 2;
  expect(await refreshed(base)).toMatchObject({ result: { updated: 2 } });
  expect(await shown()).toEqual(expected());
});

test('what a caller says of a page counts, also where the page has not changed', async () => {
  pages['/same'] = tagged('"same"', html('# Shared words.'));
  const base = await create();
  const page = { source_id: 'page', url: `${site}/same` };
  const result = async (more: object) => (await base.ingest({ ...page, ...more }, { wait: true })).sources[0]?.result;
  const shown = async () => (await base.sources())[0];
  expect(await result({})).toBe('created');
  expect(await result({ title: 'Named' })).toBe('updated');
  expect(await result({ title: 'Named' })).toBe('unchanged');
  expect(await shown()).toMatchObject({ title: 'Named', content_type: 'text/html' });
  expect(await result({ title: 'Named', source_type: 'news', tags: ['a'] })).toBe('updated');
  expect(await shown()).toMatchObject({ title: 'Named', source_type: 'news', tags: ['a'] });
  expect(await result({ content_type: 'text/plain', filename: 'same.txt' })).toBe('updated');
  const plain = { title: 'same.txt', filename: 'same.txt', content_type: 'text/plain', tags: [] };
  expect(await shown()).toMatchObject(plain);
  expect(await base.texts('shared words')).toEqual([expect.stringContaining('<p># Shared words.</p>')]);
  expect(await result({})).toBe('updated');
  expect(await shown()).toMatchObject({ title: 'Page', content_type: 'text/html' });
});

test('a call that finds a page unchanged does not keep what an earlier call writes meanwhile', async () => {
  const arrived = { '/earlier': gate(), '/later': gate() };
  const opened = { '/earlier': gate(), '/later': gate() };
  const held = (path: keyof typeof opened, text: string): Answer => {
    let asked = 0;
    return async (response, request) => {
      arrived[path].open();
      // The page of the later call is there at once for the first version.
      if (path === '/earlier' || asked++ > 0) await opened[path].promise;
      html(text)(response, request);
    };
  };
  pages['/earlier'] = held('/earlier', 'Earlier words.');
  pages['/later'] = held('/later', 'Later words.');
  const base = await create();
  const ingest = (path: string, wait: boolean) => base.ingest({ source_id: 'page', url: `${site}${path}` }, { wait });
  await ingest('/later', true);
  const earlier = await ingest('/earlier', false);
  await arrived['/earlier'].promise;
  arrived['/later'] = gate();
  const later = await ingest('/later', false);
  await arrived['/later'].promise;
  opened['/earlier'].open();
  expect(await base.ended(earlier.job_id)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  opened['/later'].open();
  expect(await base.ended(later.job_id)).toMatchObject({ status: 'completed' });
  expect(await base.texts('words')).toEqual(['Later words.']);
});

/** Bytes without an end. */
const endless: Answer = (response) => {
  const write = (): void => {
    while (response.writable && response.write(Buffer.alloc(256 * 1024, 'x')));
  };
  response.on('drain', write);
  write();
};
const broken: Answer = (response) =>
  response.writeHead(200, { 'content-length': '100' }).write('x', () => response.destroy());
const SECRET = /may not be reached/;

test.each<[string, Answer, string, RegExp]>([
  ['leads to a private address', redirect('http://10.0.0.1/secret'), 'FORBIDDEN_ADDRESS', SECRET],
  ['leads to metadata of a cloud', redirect('http://169.254.169.254/latest'), 'FORBIDDEN_ADDRESS', SECRET],
  ['leads to a file', redirect('file:///etc/passwd'), 'FETCH_FAILED', /http/],
  ['leads to itself', redirect('/bad'), 'FETCH_FAILED', /more than 5/],
  ['is not there', missing, 'FETCH_FAILED', /404/],
  ['is too large', endless, 'TOO_LARGE', /bytes/],
  ['breaks off', broken, 'FETCH_FAILED', /broke/],
  ['is a picture', picture, 'UNSUPPORTED_TYPE', /png/],
])('an address that %s is a failed source, and the others go on', async (_, answer, code, message) => {
  pages['/bad'] = answer;
  const base = await create();
  const documents = [
    { source_id: 'bad', url: `${site}/bad` },
    { source_id: 'good', content: 'Good words.' },
  ];
  const { sources, status } = await base.ingest({ documents }, { wait: true });
  expect(status).toBe('completed');
  const error = { code, message: expect.stringMatching(message) };
  expect(sources).toMatchObject([
    { source_id: 'bad', status: 'failed', result: 'failed', error },
    { source_id: 'good', status: 'completed', result: 'created' },
  ]);
  expect((await base.sources()).map(({ source_id }) => source_id)).toEqual(['good']);
});

test.each<[string, Answer]>([
  ['is gone', missing],
  ['is a picture now', picture],
  ['is empty now', (response) => response.end('')],
])('a stale source whose page %s is embedded anew from what was read of it', async (_, then) => {
  pages['/stale'] = (response) => response.end('Stale mashua.');
  const base = await create();
  await base.ingest({ source_id: 'page', url: `${site}/stale` }, { wait: true });
  pages['/stale'] = then;
  await makeStale(api.database, base);
  expect(await base.sources()).toMatchObject([{ stale: true }]);
  expect(await refreshed(base)).toMatchObject({ status: 'completed', result: { updated: 1 } });
  expect(await base.sources()).toMatchObject([{ stale: false }]);
  expect(await refreshed(base)).toMatchObject({ status: 'failed' });
  expect(await base.texts('mashua')).toEqual(['Stale mashua.']);
});

test('a page has half a minute for all its hops together', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const given: number[] = [];
  const request: Outbound['request'] = async (_url, { timeoutMs }) => {
    given.push(timeoutMs);
    vi.advanceTimersByTime(20_000);
    if (given.length > 1) throw new OutboundError('TIMEOUT');
    return { status: 302, headers: { location: '/next' }, body: Buffer.of(), truncated: false };
  };
  const fetched = fetchUrl({ request }, `${site}/first`, undefined, new AbortController().signal);
  await expect(fetched).rejects.toMatchObject({ code: 'FETCH_FAILED', message: expect.stringMatching(/within 30 s/) });
  expect(given).toEqual([30_000, 10_000]);
});
