import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Lane } from '../../../../knowledge/embedding/lanes.js';
import { LocalEmbedder } from '../../../../knowledge/embedding/local-embedder.js';
import { LOCAL_DIMENSIONS, localModelFolder, windowsOf } from '../../../../knowledge/embedding/local-model.js';
import { cleanUp } from '../../../setup/clean-up.js';

const REFERENCE = new URL('../../../../scripts/models/reference.json', import.meta.url);
const folder = localModelFolder({});
const embedder = new LocalEmbedder(folder, 2);
cleanUp(() => embedder.close());
const embed = (texts: string[], signal = AbortSignal.timeout(60_000), lane?: Lane) =>
  embedder.embed(texts, signal, lane);
const cosine = (one: Float32Array, other: Float32Array): number =>
  one.reduce((sum, value, index) => sum + value * (other[index] as number), 0);

test('cosines are those of the 32-bit weights, within what eight bits can tell', async () => {
  const { texts, cosines } = JSON.parse(readFileSync(REFERENCE, 'utf8')) as {
    texts: string[];
    cosines: [number, number, number][];
  };
  const vectors = await embed(texts);
  expect(cosines.length).toBeGreaterThan(10);
  for (const [one, other, expected] of cosines)
    expect(Math.abs(cosine(vectors[one] as Float32Array, vectors[other] as Float32Array) - expected)).toBeLessThan(
      0.08,
    );
});

test('a text has the same vector whatever it is embedded with, and vectors keep the order of the texts', async () => {
  const texts = Array.from({ length: 24 }, (_, n) => `${'long '.repeat((n * 7) % 24)}text number ${n}`);
  const together = await embed(texts);
  for (const index of [0, 11, 23]) {
    const [alone] = await embed([texts[index] as string]);
    expect(together[index]).toEqual(alone);
  }
  for (const vector of together) {
    expect(vector).toHaveLength(LOCAL_DIMENSIONS);
    expect(cosine(vector, vector)).toBeCloseTo(1, 5);
  }
});

test('a text of a megabyte and an empty one have vectors', async () => {
  const vectors = await embed(['word '.repeat(200_000), '']);
  for (const vector of vectors) expect(cosine(vector, vector)).toBeCloseTo(1, 5);
});

test('the end of a long text counts as much as its beginning', async () => {
  const filler = 'The committee met on Tuesday and approved the minutes of the last meeting. '.repeat(60);
  const fact = 'Penguins are fed with herring at noon.';
  const [query, first, last, without] = (await embed([
    'when do penguins get fish?',
    fact + filler,
    filler + fact,
    filler,
  ])) as [Float32Array, Float32Array, Float32Array, Float32Array];
  const base = cosine(query, without);
  expect(cosine(query, last)).toBeGreaterThan(base + 0.02);
  expect(Math.abs(cosine(query, last) - cosine(query, first))).toBeLessThan(0.1);
});

test.each<[number, number[]]>([
  [0, [0]],
  [254, [254]],
  [255, [128, 127]],
  [600, [200, 200, 200]],
  [16 * 254, Array(16).fill(254)],
  [100_000, Array(16).fill(254)],
])('%i tokens are read in windows of about the same length', (tokens, lengths) => {
  const windows = windowsOf(Array.from({ length: tokens }, (_, n) => n));
  expect(windows.map(({ length }) => length)).toEqual(lengths);
  expect(windows.flat()).toEqual(Array.from({ length: Math.min(tokens, 16 * 254) }, (_, n) => n));
});

test('a query goes ahead of a small text, and that of many texts that wait', async () => {
  const one = new LocalEmbedder(folder, 1);
  cleanUp(() => one.close());
  const order: string[] = [];
  const ask = (lane: Lane, count: number) =>
    one
      .embed(
        Array.from({ length: count }, (_, n) => `text ${n}`),
        AbortSignal.timeout(60_000),
        lane,
      )
      .then(() => order.push(lane));
  await Promise.all([ask('bulk', 200), ask('inline', 40), ask('query', 1)]);
  expect(order).toEqual(['query', 'inline', 'bulk']);
});

test('an aborted call ends at once, and what it asked for is not made', async () => {
  const abort = new AbortController();
  const long = embed(
    Array.from({ length: 5_000 }, (_, n) => `text ${n}`),
    abort.signal,
  );
  abort.abort(new Error('not wanted'));
  await expect(long).rejects.toThrow('not wanted');
  const texts = Array.from({ length: 20 }, (_, n) => `other ${n}`);
  expect(await embed(texts, AbortSignal.timeout(20_000))).toHaveLength(20);
});

test('more texts than may wait are refused', async () => {
  await expect(embed(Array(20_001).fill('text'))).rejects.toMatchObject({ code: 'RATE_LIMITED' });
});

test('a model that is broken fails the call', async () => {
  const broken = new LocalEmbedder('/nonexistent', 1);
  cleanUp(() => broken.close());
  await expect(broken.embed(['one', 'two'], AbortSignal.timeout(30_000))).rejects.toMatchObject({
    code: 'BAD_GATEWAY',
  });
});

/** Closes an embedder while its thread is at a text, in a process of its own. */
const CLOSING = `
  void (async () => {
    const { LocalEmbedder } = await import(process.argv[1]);
    const embedder = new LocalEmbedder(process.argv[2], 1);
    const signal = new AbortController().signal;
    const ends = [];
    if (process.argv[3] === 'reading') await embedder.embed(['first'], signal);
    const call = embedder.embed(Array(50).fill('word '.repeat(500)), signal).catch(({ message }) => ends.push(message));
    await embedder.close();
    await call;
    await embedder.embed(['late'], signal).catch(({ message }) => ends.push(message));
    console.log(JSON.stringify(ends));
    process.exit(0);
  })();`;

test.each(['loading the model', 'reading'])(
  'a close while the thread is %s ends calls, and not the process',
  async (when) => {
    const embedderFile = new URL('../../../../dist/knowledge/embedding/local-embedder.js', import.meta.url).href;
    const child = spawn(process.execPath, ['--eval', CLOSING, embedderFile, folder, when]);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const [code, signal] = await once(child, 'close');
    const closed = 'The local embedding model failed: it was closed.';
    expect({ code, signal, output: output.trim() }).toEqual({
      code: 0,
      signal: null,
      output: JSON.stringify([closed, closed]),
    });
  },
);
