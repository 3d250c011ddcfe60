import { deflateRawSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { ParseError } from '../../../knowledge/parse/parse-error.js';
import { readAlone } from '../../../knowledge/threads/read-alone.js';
import { ReaderPool } from '../../../knowledge/threads/reader-pool.js';
import { docxOf, pdfBomb, pdfOf, zipOf } from '../../knowledge/parse/documents.js';

const MB = 1024 * 1024;
const pool = new ReaderPool({ timeoutMs: 60_000 });
afterAll(() => pool.close());
const chunking = { chunk_tokens: 200, chunk_overlap: 30 };
const never = new AbortController().signal;

let tenants = 0;
function read(content: Buffer | string, hints: { filename?: string } = {}, signal = never) {
  tenants += 1;
  return pool.read(`ten_${tenants}`, { content: Buffer.from(content), hints, chunking }, signal);
}

async function outcome(content: Buffer | string, filename?: string): Promise<string> {
  return read(content, filename === undefined ? {} : { filename }).then(
    ({ chunks }) => `${chunks.length > 0 ? 'chunks' : 'nothing'}`,
    (error: unknown) => (error instanceof ParseError ? error.code : String(error)),
  );
}

/** What was asked of a pool, and by how much the process grew meanwhile. */
async function growthOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 20);
  await work();
  clearInterval(watch);
  return most - before;
}

const nested = (element: string, times: number) =>
  `<html>${`<${element}>`.repeat(times)}deep${`</${element}>`.repeat(times)}`;
const bomb = Buffer.alloc(200 * MB, ' ');

test.each<[string, () => Buffer | string, string | undefined, string]>([
  ['a DOCX that unpacks to 200 MB', () => docxOf(['a'], { 'word/media/x.bin': bomb }), 'a.docx', 'TOO_LARGE'],
  [
    'a DOCX that lies about its size',
    () => zipOf({ 'word/document.xml': Buffer.alloc(150 * MB, ' ') }, 1_000),
    'a.docx',
    'DAMAGED',
  ],
  ['an archive inside an archive', () => zipOf({ 'a.zip': zipOf({ b: 'c' }) }), 'a.zip', 'UNSUPPORTED_TYPE'],
  ['10 MiB of one line', () => 'x'.repeat(10 * MB), undefined, 'chunks'],
  ['10 MiB of one line of Markdown', () => `# a\n${'b *c* '.repeat(1_700_000)}`, 'a.md', 'chunks'],
  ['100,000 headings', () => '# heading\n\nword\n\n'.repeat(100_000), 'a.md', 'chunks'],
  ['100,000 headings in HTML', () => `<html>${'<h2>a</h2><p>b</p>'.repeat(100_000)}`, undefined, 'chunks'],
  ['100,000 elements inside one another', () => nested('div', 100_000), undefined, 'chunks'],
  ['tables inside one another', () => nested('table><tr><td', 2_000), undefined, 'chunks'],
  ['quotes inside one another in Markdown', () => `# a\n\n${'> '.repeat(50_000)}deep\n`, 'a.md', 'chunks'],
  [
    'lists inside one another in Markdown',
    () => `# a\n\n${Array.from({ length: 3_000 }, (_, at) => `${' '.repeat(at * 2)}- a`).join('\n')}`,
    'a.md',
    'chunks',
  ],
  ['brackets inside one another in Markdown', () => `# a\n\n${'['.repeat(100_000)}a`, 'a.md', 'chunks'],
  [
    'invalid UTF-8',
    () => Buffer.concat([Buffer.from('words '.repeat(100)), Buffer.from([0xc3, 0x28, 0xf0, 0x9f])]),
    undefined,
    'chunks',
  ],
  ['JSON nested 100,000 times', () => `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'a.json', 'TOO_LARGE'],
  ['a CSV of one record of a megabyte', () => `a,b\n"${'x'.repeat(MB)}",1\n`, 'a.csv', 'DAMAGED'],
  ['a CSV that is not one', () => 'a,"b\nc', 'a.csv', 'DAMAGED'],
  ['a PDF of images', () => pdfOf([null]), undefined, 'NO_TEXT'],
  ['a PDF of 6,000 pages', () => pdfOf(Array.from({ length: 6_000 }, () => ['a'])), undefined, 'TOO_LARGE'],
  ['raw deflate that is called DOCX', () => deflateRawSync('hello'), 'a.docx', 'DAMAGED'],
])(
  '%s',
  async (_, content, filename, expected) => {
    let found = '';
    const growth = await growthOf(async () => {
      found = await outcome(content(), filename);
    });
    expect(found).toBe(expected);
    expect(growth).toBeLessThan(1_600 * MB);
  },
  90_000,
);

test('a document of thousands of chunks is given whole, in its order, also by a process of its own', async () => {
  const content = Buffer.from(Array.from({ length: 5_000 }, (_, at) => `# Heading ${at}\n\nWord ${at}.\n`).join('\n'));
  const request = { content, hints: { filename: 'a.md' }, chunking: { ...chunking, chunk_tokens: 32 } };
  const { chunks } = await pool.read('ten_many', request, never);
  const found = chunks.flatMap(({ text }) => [...text.matchAll(/^Word (\d+)/gm)].map(([, at]) => Number(at)));
  expect(new Set(found).size).toBe(5_000);
  expect(found).toEqual([...found].sort((a, b) => a - b));
  expect(chunks.length).toBeGreaterThan(1_000);
  const alone = await readAlone(request, 60_000, never);
  expect(alone.ok && alone.read.chunks).toEqual(chunks);
}, 90_000);

test('a PDF that inflates without an end is stopped, and the next document is read', async () => {
  expect(['TOO_COMPLEX', 'NO_TEXT', 'DAMAGED', 'TOO_LARGE']).toContain(await outcome(pdfBomb(900 * MB)));
  expect(await outcome('Some words.')).toBe('chunks');
}, 90_000);

test('a document is not given up for what else takes memory in the process', async () => {
  const reading = outcome('word '.repeat(2 * MB));
  const others = Buffer.alloc(1_300 * MB, 1); // as an index would
  expect(await reading).toBe('chunks');
  expect(others.length).toBeGreaterThan(0);
}, 60_000);

test('a document that takes too long is stopped, and leaves the loop of the process free', async () => {
  const quick = new ReaderPool({ timeoutMs: 300 });
  let turns = 0;
  const watch = setInterval(() => {
    turns += 1;
  }, 10);
  const slow = { content: Buffer.from('word '.repeat(2 * MB)), hints: {}, chunking };
  await expect(quick.read('ten_slow', slow, never)).rejects.toMatchObject({
    code: 'TOO_COMPLEX',
    message: expect.stringMatching(/time/),
  });
  clearInterval(watch);
  expect(turns).toBeGreaterThan(2); // of some thirty; one, if the document were read in between
  await quick.close();
}, 60_000);

test('a caller that gives up ends its thread, and waits no longer', async () => {
  const giveUp = new AbortController();
  const reading = read('word '.repeat(2 * MB), {}, giveUp.signal);
  giveUp.abort(new Error('enough'));
  await expect(reading).rejects.toThrow('enough');
  expect(await outcome('Some words.')).toBe('chunks');
});

test('a document that needs more memory than a thread has is stopped, and is named as the reason', async () => {
  // Each of its values takes far more room than its two characters.
  const many = `[${'{},'.repeat(3_400_000)}{}]`;
  await expect(read(many, { filename: 'a.json' })).rejects.toMatchObject({ code: 'TOO_COMPLEX' });
  expect(await outcome('Some words.')).toBe('chunks');
}, 180_000);
