import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { IngestResponse, type JobResponse, Sources } from '../../contracts/api/knowledge/knowledge.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
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
