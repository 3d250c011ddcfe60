import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { IngestResponse, type JobResponse, Sources } from '../../contracts/api/knowledge/knowledge.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { gate } from '../setup/until.js';
import { TestBase } from './fixture.js';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let shared: SharedPlatform;
/** What the web server says at each path; a path without an answer is 404. */
const pages: Record<string, Answer> = {};
let site = '';
beforeAll(async () => {
  const server = createServer((request, response) => {
    const answer = pages[request.url ?? ''];
    if (answer) return answer(response, request);
    response.statusCode = 404;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  shared = await startPlatform();
  return async () => {
    await shared.dispose();
    server.closeAllConnections();
    server.close();
  };
});
const create = () => TestBase.create(shared.platform.client);

const html =
  (text: string): Answer =>
  (response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<html><title>Page</title><p>${text}</p></html>`);
  };
const redirect =
  (location: string): Answer =>
  (response) => {
    response.writeHead(302, { location });
    response.end();
  };
const refreshed = async (base: TestBase, body: object = {}): Promise<JobResponse> =>
  base.ended((await base.ok('refresh', body, IngestResponse.pick({ job_id: true }))).job_id);

test('a page is read, cited by its address, and refreshed by its ETag', async () => {
  let version = 1;
  const asked: (string | undefined)[] = [];
  pages['/moved'] = redirect('/news');
  pages['/news'] = (response, request) => {
    asked.push(request.headers['if-none-match']);
    const etag = `"v${version}"`;
    response.setHeader('etag', etag);
    if (request.headers['if-none-match'] === etag) {
      response.statusCode = 304;
      return response.end();
    }
    html(`News of version ${version}.`)(response, request);
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
    response.setHeader('content-type', 'text/plain');
    response.end(`# Version ${version}\n\n## Seals\n\nSeals of version ${version}.`);
  };
  const base = await create();
  const page = { url: `${site}/notes`, content_type: 'text/markdown' };
  const documents = [
    { ...page, source_id: 'named', title: 'My notes' },
    { ...page, source_id: 'found' },
  ];
  await base.ingest({ documents }, { wait: true });
  const shown = async () => {
    const { sources } = await base.ok('get_sources', {}, Sources);
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
  pages['/same'] = (response, request) => {
    response.setHeader('etag', '"same"');
    if (request.headers['if-none-match'] === '"same"') return response.writeHead(304).end();
    html('# Shared words.')(response, request);
  };
  const base = await create();
  const page = { source_id: 'page', url: `${site}/same` };
  const result = async (more: object) => (await base.ingest({ ...page, ...more }, { wait: true })).sources[0]?.result;
  const shown = async () => (await base.ok('get_sources', {}, Sources)).sources[0];
  expect(await result({})).toBe('created');
  expect(await result({ title: 'Named' })).toBe('updated');
  expect(await result({ title: 'Named' })).toBe('unchanged');
  expect(await shown()).toMatchObject({ title: 'Named', content_type: 'text/html' });
  expect(await result({ title: 'Named', source_type: 'news', tags: ['a'] })).toBe('updated');
  expect(await shown()).toMatchObject({ title: 'Named', source_type: 'news', tags: ['a'] });
  expect(await result({ content_type: 'text/plain', filename: 'same.txt' })).toBe('updated');
  expect(await shown()).toMatchObject({
    title: 'same.txt',
    filename: 'same.txt',
    content_type: 'text/plain',
    tags: [],
  });
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

test.each<[string, string, Answer, string, RegExp]>([
  [
    'leads to a private address',
    '/private',
    redirect('http://10.0.0.1/secret'),
    'FORBIDDEN_ADDRESS',
    /may not be reached/,
  ],
  [
    'leads to metadata of a cloud',
    '/metadata',
    redirect('http://169.254.169.254/latest'),
    'FORBIDDEN_ADDRESS',
    /may not be reached/,
  ],
  ['leads to a file', '/file', redirect('file:///etc/passwd'), 'FETCH_FAILED', /http/],
  ['leads to itself', '/loop', redirect('/loop'), 'FETCH_FAILED', /more than 5/],
  ['is not there', '/nowhere', (response) => response.writeHead(404).end(), 'FETCH_FAILED', /404/],
  [
    'is too large',
    '/large',
    (response) => {
      const write = (): void => {
        while (response.writable && response.write(Buffer.alloc(256 * 1024, 'x')));
      };
      response.on('drain', write);
      write();
    },
    'TOO_LARGE',
    /bytes/,
  ],
  [
    'breaks off',
    '/broken',
    (response) => response.writeHead(200, { 'content-length': '100' }).write('x', () => response.destroy()),
    'FETCH_FAILED',
    /broke/,
  ],
  [
    'is a picture',
    '/picture',
    (response) => response.end(Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')),
    'UNSUPPORTED_TYPE',
    /png/,
  ],
])('an address that %s is a failed source, and the others go on', async (_, path, answer, code, message) => {
  pages[path] = answer;
  const base = await create();
  const documents = [
    { source_id: 'bad', url: `${site}${path}` },
    { source_id: 'good', content: 'Good words.' },
  ];
  const { sources, status } = await base.ingest({ documents }, { wait: true });
  expect(status).toBe('completed');
  expect(sources).toMatchObject([
    { source_id: 'bad', status: 'failed', result: 'failed', error: { code, message: expect.stringMatching(message) } },
    { source_id: 'good', status: 'completed', result: 'created' },
  ]);
  expect((await base.ok('get_sources', {}, Sources)).sources.map(({ source_id }) => source_id)).toEqual(['good']);
});

test('a server that drips its bytes is left after half a minute', async () => {
  pages['/drip'] = (response) => {
    const timer = setInterval(() => response.write('x'), 500);
    response.on('close', () => clearInterval(timer));
  };
  const base = await create();
  const startedAt = performance.now();
  const job = await base.ended((await base.ingest({ url: `${site}/drip` })).job_id, 90_000);
  expect(job).toMatchObject({
    status: 'failed',
    error: { code: 'FETCH_FAILED', message: expect.stringMatching(/within 30 s/) },
  });
  expect(performance.now() - startedAt).toBeLessThan(80_000);
}, 120_000);
