import { expect, test } from 'vitest';
import { NamespaceIndex } from '../../../knowledge/search/index/namespace-index.js';
import { queryTerms, termsOf } from '../../../knowledge/search/index/terms.js';
import { rankAll } from '../../../knowledge/search/rank/rank.js';
import { inverseFrequency, lexicalScore, scoreOf } from '../../../knowledge/search/rank/ranking.js';
import { TopList } from '../../../knowledge/search/rank/top-list.js';

test.each([
  ['retries retrying retried', ['retry', 'retry', 'retry']],
  ['Invoices, invoiced: INVOICE', ['invoic', 'invoic', 'invoic']],
  ['stopping a bus; boxes', ['stop', 'a', 'bus', 'box']],
  ['Größe façade', ['große', 'facad']],
  ['ERR_CONN-7 v2.3', ['err', 'conn', '7', 'err_conn-7', 'v2', '3', 'v2.3']],
  ['漢字かな', ['漢字', '字か', 'かな']],
  ['', []],
])('terms of %j', (text, terms) => {
  expect(termsOf(text)).toEqual(terms);
});

test('a query loses its stop words, unless it has nothing else', () => {
  expect(queryTerms('how do I reset the password, the password?')).toEqual(['reset', 'password']);
  expect(queryTerms('to be or not to be')).toEqual(['to', 'be', 'or', 'not']);
});

test.each([
  ['semantic', { cosine: 0.4, lexical: 0.9, coverage: 1 }, 0.4],
  ['semantic', { cosine: undefined, lexical: 0.9, coverage: 1 }, undefined],
  ['lexical', { cosine: 0.4, lexical: 0.7, coverage: 1 }, 0.7],
  ['lexical', { cosine: 0.4, lexical: 0, coverage: 0 }, undefined],
  ['hybrid', { cosine: 0.4, lexical: 0.7, coverage: 1 }, 0.7],
  ['hybrid', { cosine: 0.4, lexical: 0.7, coverage: 0.5 }, 0.475],
  ['hybrid', { cosine: 0.9, lexical: 0.7, coverage: 1 }, 1],
  ['hybrid', { cosine: -0.1, lexical: 0, coverage: 0 }, -0.1],
  ['hybrid', { cosine: undefined, lexical: 0.7, coverage: 1 }, 0.7],
  ['hybrid', { cosine: undefined, lexical: 0, coverage: 0 }, undefined],
] as const)('%s score of %j', (mode, fit, expected) => {
  const score = scoreOf(mode, fit);
  if (expected === undefined) expect(score).toBeUndefined();
  else expect(score).toBeCloseTo(expected, 10);
});

test('rare terms weigh more than frequent ones, and none weighs less than nothing', () => {
  expect(inverseFrequency(100, 1)).toBeGreaterThan(inverseFrequency(100, 50));
  expect(inverseFrequency(100, 100)).toBeGreaterThan(0);
  expect(lexicalScore(1, 4)).toBe(0.5);
  expect(lexicalScore(1, 0)).toBe(0);
});

test('the list of the best keeps the best, in order, and of equals the first', () => {
  const list = new TopList(3);
  for (const [item, score] of [0.1, 0.9, 0.5, 0.5, 0.2, 0.9].entries()) list.add(item, score);
  expect(list.sorted()).toEqual([
    { item: 1, score: 0.9 },
    { item: 5, score: 0.9 },
    { item: 2, score: 0.5 },
  ]);
});

function indexOf(texts: Record<string, string>): NamespaceIndex {
  const index = new NamespaceIndex(0, false);
  for (const [sourceId, text] of Object.entries(texts))
    index.add([
      {
        source: { sourceId, version: 1, model: null },
        chunks: [{ ordinal: 0, terms: termsOf(text), vector: undefined }],
      },
    ]);
  return index;
}

const wordsOnly = async (index: NamespaceIndex, query: string) => {
  const request = { terms: queryTerms(query), vector: undefined, mode: 'lexical' as const, minScore: 0, limit: 10 };
  return (await rankAll(index, request)).candidates.map(({ sourceId }) => sourceId);
};

test('a misspelt word finds the word that looks like it', async () => {
  const index = indexOf({ a: 'the telescope is cleaned', b: 'the kitchen is cleaned' });
  expect(await wordsOnly(index, 'telescpoe')).toEqual(['a']);
  expect(await wordsOnly(index, 'zzzzzz')).toEqual([]);
});

test.each([
  ['two letters are swapped', 'refnud'],
  ['a letter is missing', 'efund'],
  ['a letter is added', 'refumnd'],
  ['a letter is another', 'rwfund'],
])('a short word is found where %s', async (_what, query) => {
  const index = indexOf({ a: 'the refund is paid', b: 'the kitchen is cleaned' });
  expect(await wordsOnly(index, query)).toEqual(['a']);
});

test('two slips, numbers that differ, and words beside one that is there find nothing more', async () => {
  const index = indexOf({ a: 'the refund of 2023', b: 'a form', c: 'a fort' });
  expect(await wordsOnly(index, 'rwfudn')).toEqual([]);
  expect(await wordsOnly(index, '2024')).toEqual([]);
  expect(await wordsOnly(index, 'form')).toEqual(['b']);
});

test('sources that come and go by the thousand leave the same answers as an index built anew', async () => {
  const text = (n: number) => `common w${n % 50} word${n} ${n % 2 ? 'odd' : 'even'}`;
  const index = indexOf(Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`s${n}`, text(n)])));
  index.drop(Array.from({ length: 400 }, (_, n) => `s${n}`));
  const anew = indexOf(Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`s${n + 400}`, text(n + 400)])));
  expect(index.chunks).toBe(200);
  for (const query of ['w7 odd', 'word450', 'common', 'word3']) {
    const [one, other] = await Promise.all([wordsOnly(index, query), wordsOnly(anew, query)]);
    expect(one).toEqual(other);
  }
  expect(index.bytes).toBeLessThan(4 * anew.bytes);
});
