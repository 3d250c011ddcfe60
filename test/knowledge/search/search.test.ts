import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Db } from '../../../db/pool.js';
import { IndexCache } from '../../../knowledge/search/index/index-cache.js';
import { IndexLoader } from '../../../knowledge/search/index/index-loader.js';
import { Searcher } from '../../../knowledge/search/searcher.js';
import type { SearchScope } from '../../../knowledge/search-query.js';
import { insertTenant } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { testProvider, WORD_MODEL } from '../../setup/embeddings.js';
import {
  ask,
  deleteSource,
  insertBase,
  insertSource,
  knowledgeSearch,
  type TestSource,
} from '../../setup/knowledge-rows.js';
import { rowsRead } from '../../setup/rows-read.js';
import { gate, until } from '../../setup/until.js';

const database = await freshDatabase();
const provider = await testProvider();
const search = await knowledgeSearch(database, provider.embedder);
const wordSearch = await knowledgeSearch(database, undefined);

const NAMESPACE = 'handbook';
let tenantId: string;
let scope: SearchScope;
beforeEach(async () => {
  tenantId = await insertTenant(database);
  await insertBase(database, tenantId, NAMESPACE);
  scope = { tenantId, namespaces: [NAMESPACE] };
});

const put = (sourceId: string, texts: string[], more: Partial<TestSource> = {}): Promise<void> =>
  insertSource(database, { tenantId, namespace: NAMESPACE, sourceId, texts, ...more });
/** A base of one source, in another namespace or of another tenant. */
async function putBase(
  namespace: string,
  texts: string[],
  ofTenant = tenantId,
  sourceId = 'doc',
): Promise<SearchScope> {
  await insertBase(database, ofTenant, namespace);
  await insertSource(database, { tenantId: ofTenant, namespace, sourceId, texts });
  return { tenantId: ofTenant, namespaces: [namespace] };
}

const found = ({ results }: { results: { source_id: string }[] }): string[] =>
  results.map(({ source_id }) => source_id);

test('a result carries its text, its scores and a citation that points at the text', async () => {
  await put('parking', ['Bicycles are kept in the yard.', 'Visitors park behind the mill.'], {
    title: 'Parking',
    heading: ['Site', 'Cars'],
    tags: ['site'],
    metadata: { floor: 0 },
  });
  const { results, mode_used, total_candidates } = await ask(search, scope, 'where do visitors park', { topK: 1 });
  expect(mode_used).toBe('hybrid');
  expect(total_candidates).toBe(2);
  const stretch = { page_start: 2, page_end: 2, char_start: 20, char_end: 29 };
  expect(results).toEqual([
    {
      text: 'Visitors park behind the mill.',
      source_id: 'parking',
      chunk_id: expect.any(String),
      namespace: NAMESPACE,
      title: 'Parking',
      tags: ['site'],
      metadata: { floor: 0 },
      score: expect.any(Number),
      scores: { semantic: expect.any(Number), lexical: expect.any(Number) },
      citation: { ...stretch, filename: 'parking.txt', heading_path: ['Site', 'Cars'] },
    },
  ]);
});

test('a deleted source does not answer any more, a new one answers at once, and a replaced one with its new text', async () => {
  const boilers = async () => {
    const { results, total_candidates } = await ask(search, scope, 'boiler inspected');
    return [...results.map(({ text }) => text), total_candidates];
  };
  await put('old', ['the boiler is inspected in march', 'and closed in winter']);
  expect(await boilers()).toContain('the boiler is inspected in march');
  await put('old', ['the boiler is inspected in april']);
  expect(await boilers()).toEqual(['the boiler is inspected in april', 1]);
  await deleteSource(database, tenantId, NAMESPACE, 'old');
  expect(await boilers()).toEqual([0]);
  await put('new', ['the boiler is inspected in may']);
  expect(await boilers()).toEqual(['the boiler is inspected in may', 1]);
});

test('a deleted knowledge base answers nothing, also where its index is still in memory', async () => {
  await put('one', ['the boiler is inspected in march']);
  await ask(search, scope, 'boiler');
  await database.query('UPDATE knowledge_bases SET deleted_at = now() WHERE tenant_id = $1', [tenantId]);
  expect(await ask(search, scope, 'boiler')).toMatchObject({ results: [], total_candidates: 0 });
});

test('two tenants with the same namespace and source id never meet', async () => {
  await put('notes', ['the password of the safe is plum']);
  const other = await putBase(NAMESPACE, ['nothing is written here'], await insertTenant(database), 'notes');
  for (const one of [search, wordSearch]) {
    await ask(one, scope, 'password safe');
    const theirs = await ask(one, other, 'password safe');
    expect(theirs.results.map(({ text }) => text)).not.toContain('the password of the safe is plum');
    expect(theirs.total_candidates).toBeLessThanOrEqual(1);
  }
});

test('filters narrow the sources, and all that are given must hold', async () => {
  await put('a', ['soup recipe'], { tags: ['kitchen', 'winter'], metadata: { lang: 'en', author: { name: 'Ida' } } });
  await put('b', ['soup recipe'], { tags: ['kitchen'], metadata: { lang: 'de' } });
  await put('c', ['soup recipe'], { tags: ['garden'] });
  const filtered = async (filters: object) => found(await ask(search, scope, 'soup', { filters })).sort();
  expect(await filtered({ tags_any: ['winter', 'garden'] })).toEqual(['a', 'c']);
  expect(await filtered({ tags_all: ['kitchen', 'winter'] })).toEqual(['a']);
  expect(await filtered({ source_ids: ['b', 'c', 'unknown'] })).toEqual(['b', 'c']);
  expect(await filtered({ metadata: { author: { name: 'Ida' } } })).toEqual(['a']);
  expect(await filtered({ tags_any: ['kitchen'], metadata: { lang: 'de' } })).toEqual(['b']);
  const none = await ask(search, scope, 'soup', { filters: { tags_any: ['none'] } });
  expect(none).toMatchObject({ results: [], total_candidates: 0 });
});

test('several namespaces answer together, the best first', async () => {
  await put('near', ['lilac hedge cut']);
  await putBase('second', ['lilac hedge cut in june'], tenantId, 'nearest');
  const both = { tenantId, namespaces: [NAMESPACE, 'second', 'missing'] };
  const { results } = await ask(search, both, 'lilac hedge cut in june');
  expect(results.map(({ namespace, source_id }) => [namespace, source_id])).toEqual([
    ['second', 'nearest'],
    [NAMESPACE, 'near'],
  ]);
});

test('top_k and min_score bound the answer, and total_candidates counts what passed', async () => {
  for (let n = 0; n < 8; n++) await put(`s${n}`, [`${'lamp '.repeat(n)}bulb replacement`]);
  const all = await ask(search, scope, 'lamp', { topK: 50 });
  expect(all.results).toHaveLength(8);
  const scores = all.results.map(({ score }) => score);
  expect(scores).toEqual([...scores].sort((one, other) => other - one));
  const minScore = ((scores[6] as number) + (scores[7] as number)) / 2;
  const some = await ask(search, scope, 'lamp', { topK: 2, minScore });
  expect(some.results).toEqual(all.results.slice(0, 2));
  expect(some.total_candidates).toBe(7);
});

test('semantic and lexical use one measure each', async () => {
  await put('doc', ['harbour crane maintenance']);
  const lexical = await ask(search, scope, 'crane', { mode: 'lexical' });
  expect(lexical).toMatchObject({ mode_used: 'lexical', results: [{ scores: { lexical: expect.any(Number) } }] });
  expect(lexical.results[0]?.scores).not.toHaveProperty('semantic');
  const semantic = await ask(search, scope, 'crane', { mode: 'semantic' });
  expect(semantic.mode_used).toBe('semantic');
  expect(semantic.results[0]?.scores).not.toHaveProperty('lexical');
  expect(provider.texts.filter((text) => text === 'crane')).toHaveLength(1); // words alone need no provider
});

test('chunks of another model are stale: they answer by words, and mode_used says so when all are', async () => {
  await put('stale', ['anchor chain inspection'], { model: 'another-model' });
  const alone = await ask(search, scope, 'anchor chain');
  expect(alone).toMatchObject({ mode_used: 'lexical', results: [{ source_id: 'stale' }] });
  expect(alone.results[0]?.scores).not.toHaveProperty('semantic');
  const byMeaning = await ask(search, scope, 'anchor chain', { mode: 'semantic' });
  expect(byMeaning).toMatchObject({ mode_used: 'semantic', results: [] });
  await put('current', ['anchor chain storage']);
  const both = await ask(search, scope, 'anchor chain');
  expect(both.mode_used).toBe('hybrid');
  expect(found(both).sort()).toEqual(['current', 'stale']);
  const only = (sourceId: string) => ask(search, scope, 'anchor chain', { filters: { source_ids: [sourceId] } });
  expect(await only('stale')).toMatchObject({ mode_used: 'lexical', results: [{ source_id: 'stale' }] });
  expect(await only('current')).toMatchObject({ mode_used: 'hybrid', results: [{ source_id: 'current' }] });
  await put('stale', ['anchor chain inspection'], { model: WORD_MODEL });
  expect((await ask(search, scope, 'anchor chain')).results.every(({ scores }) => 'semantic' in scores)).toBe(true);
});

test('vectors of other dimensions under the same name are stale too', async () => {
  await put('short', ['anchor chain inspection'], { vectors: [Float32Array.of(1, 0)] });
  const answer = await ask(search, scope, 'anchor chain');
  expect(answer).toMatchObject({ mode_used: 'lexical', results: [{ source_id: 'short' }] });
});

test('without an embedder search is by words, and semantic is refused', async () => {
  await put('doc', ['The turbine is greased twice a year.'], { model: null });
  const answer = await ask(wordSearch, scope, 'greasing turbines');
  expect(answer).toMatchObject({ mode_used: 'lexical', results: [{ source_id: 'doc' }] });
  expect(await ask(wordSearch, scope, 'turbine', { mode: 'hybrid' })).toMatchObject({ mode_used: 'lexical' });
  const refused = ask(wordSearch, scope, 'turbine', { mode: 'semantic' });
  await expect(refused).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});

test('a provider that fails is 502, and not a search by words in secret', async () => {
  await put('doc', ['turbine']);
  provider.fail('');
  onTestFinished(() => provider.fail(null));
  await expect(ask(search, scope, 'turbine')).rejects.toMatchObject({ code: 'BAD_GATEWAY' });
  expect(await ask(search, scope, 'turbine', { mode: 'lexical' })).toMatchObject({ mode_used: 'lexical' });
});

test('a search that fails in the database says nothing of it', async () => {
  await put('doc', ['turbine']);
  await database.query('ALTER TABLE knowledge_chunks RENAME COLUMN heading_path TO renamed');
  const failure = await ask(search, scope, 'turbine').catch((error: unknown) => error);
  await database.query('ALTER TABLE knowledge_chunks RENAME COLUMN renamed TO heading_path');
  expect(failure).toMatchObject({ code: 'INTERNAL_ERROR', message: 'The search failed.' });
  expect(failure).toMatchObject({ cause: expect.stringContaining('heading_path') }); // for the log
  expect(found(await ask(search, scope, 'turbine'))).toEqual(['doc']);
});

test('while a source is replaced again and again, it answers in one version, and never not at all', async () => {
  await put('doc', ['version 0 of the turbine manual']);
  const seen = new Set<number>();
  let isWriting = true;
  const writing = (async () => {
    for (let n = 1; n <= 25; n++) await put('doc', [`version ${n} of the turbine manual`]);
    isWriting = false;
  })();
  const versions: number[] = [];
  while (isWriting) {
    const { results } = await ask(search, scope, 'turbine manual');
    seen.add(results.length);
    versions.push(Number(/\d+/.exec(results[0]?.text ?? '')?.[0]));
  }
  await writing;
  expect([...seen]).toEqual([1]);
  expect(versions).toEqual([...versions].sort((one, other) => one - other));
});

test('indexes that need more memory than there is make room for each other, and one that is larger alone is refused', async () => {
  const small = await knowledgeSearch(database, provider.embedder, { cacheMb: 1 });
  const text = Array.from({ length: 200 }, (_, n) => `word${n}`).join(' ');
  const bases: SearchScope[] = [];
  for (const namespace of ['first', 'second', 'third']) bases.push(await putBase(namespace, Array(400).fill(text)));
  for (const base of [...bases, ...bases]) {
    const { results } = await ask(small, base, 'word7');
    expect(results).toHaveLength(5);
    expect((await small.memory()).bytes).toBeLessThanOrEqual(1024 * 1024);
  }
  const together = await Promise.all(bases.map((base) => ask(small, base, 'word7')));
  expect(together.map(({ results }) => results.length)).toEqual([5, 5, 5]);
  await put('large', Array(2_000).fill(text));
  await expect(ask(small, scope, 'word7')).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect((await ask(small, bases[0] as SearchScope, 'word7')).results).toHaveLength(5);
});

test('a query waits only so long for its knowledge base to be read, and a later one finds what was read meanwhile', async () => {
  await put('slow', ['the boiler is inspected in march']);
  const held = gate();
  let reads = 0;
  const db: Pick<Db, 'tenant'> = {
    tenant: async (...call) => {
      reads += 1;
      await held.promise;
      return database.db().tenant(...call);
    },
  };
  const inTurn = (_: string, __: object, load: () => Promise<void>) => load();
  const loader = new IndexLoader({ db, model: null, keepsVectors: true, inTurn, onGrowth: () => undefined });
  const cache = new IndexCache(loader, 1024 * 1024);
  const key = { tenantId, namespace: NAMESPACE };
  for (let n = 0; n < 3; n++)
    await expect(cache.at(key, 1, 0, AbortSignal.timeout(20))).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(reads).toBe(1);
  held.open();
  const index = await until(() => cache.at(key, 1, 0, AbortSignal.timeout(1_000)));
  expect(index.chunks).toBe(1);
  expect(reads).toBe(2); // its sources and their chunks
});

test('searches that wait for their indexes keep no other tenant from searching', async () => {
  await put('quick', ['the boiler is inspected in march']);
  await ask(wordSearch, scope, 'boiler');
  const others: SearchScope[] = [];
  for (let n = 0; n < 2; n++) others.push(await putBase(NAMESPACE, ['a boiler'], await insertTenant(database)));
  const locked = gate();
  const release = gate();
  const lock = database.db().system(async (tx) => {
    await tx.query('LOCK TABLE knowledge_chunks IN ACCESS EXCLUSIVE MODE');
    locked.open();
    await release.promise;
  });
  await locked.promise;
  let answered = 0;
  const waiting = [...others, ...others, ...others, ...others].map(async (other) => {
    const { results } = await ask(wordSearch, other, 'boiler');
    answered += 1;
    return results.length;
  });
  // It finds nothing, so that the locked chunks are not read for it.
  expect(await ask(wordSearch, scope, 'zeppelin')).toMatchObject({ results: [] });
  expect(answered).toBe(0);
  release.open();
  await lock;
  expect(await Promise.all(waiting)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
});

test('a query with many knowledge bases waits once for all of them, and reads a few at a time', async () => {
  const namespaces = Array.from({ length: 10 }, (_, n) => `part-${n}`);
  for (const namespace of namespaces) await putBase(namespace, ['a boiler']);
  const held = gate();
  let reads = 0;
  const db: Pick<Db, 'tenant' | 'system'> = {
    system: (work) => database.db().system(work),
    tenant: async (...call) => {
      reads += 1;
      if (reads > 1) await held.promise; // the first one reads the revisions
      return database.db().tenant(...call);
    },
  };
  const request = { tenantId, namespaces, query: 'boiler', vector: undefined, mode: 'lexical' as const };
  const searcher = new Searcher({ db, model: null, usesPgvector: false, cacheBytes: 1024 * 1024, waitMaxMs: 50 });
  const ask10 = () => searcher.search({ ...request, minScore: 0, limit: 50, filters: undefined }, 0);
  await expect(ask10()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(reads).toBe(1 + 4);
  held.open();
  const { found: all, total } = await until(ask10, { what: 'an answer' });
  expect(all.map(({ namespace }) => namespace).sort()).toEqual([...namespaces].sort());
  expect(total).toBe(10);
});

test('while sources are taken in, a query reads those that changed and no others', async () => {
  await database.query(
    `INSERT INTO knowledge_sources (tenant_id, namespace, source_id, place, version, title, content_type, content_hash, chunking, extracted,
       chunk_count, token_count, byte_count)
     SELECT $1, $2, 's' || n, n, n, '', 'text/plain', '', '', '', 0, 0, 0 FROM generate_series(1, 5000) AS n`,
    [tenantId, NAMESPACE],
  );
  await database.query('ANALYZE knowledge_sources');
  await put('first', ['the boiler is inspected in march']);
  const index = await knowledgeSearch(database, undefined);
  const boilers = async () => found(await ask(index, scope, 'boiler')).sort();
  expect(await boilers()).toEqual(['first']);
  await put('second', ['the boiler is inspected in april']);
  const read = await rowsRead(database, /^knowledge_sources/, async () => {
    expect(await boilers()).toEqual(['first', 'second']);
  });
  expect(read).toBeLessThan(50);
  await deleteSource(database, tenantId, NAMESPACE, 'first');
  expect(await boilers()).toEqual(['second']);
});

test('large loads run one at a time, in the turns of their tenants, and small ones beside them', async () => {
  const loader: IndexLoader = new IndexLoader({
    ...{ db: database.db(), model: null, keepsVectors: true },
    ...{ inTurn: (...load) => cache.load(...load), onGrowth: (index) => cache.grow(index) },
  });
  const cache = new IndexCache(loader, 1024 * 1024);
  const order: string[] = [];
  const load = (name: string, missing: number, until: Promise<void> = Promise.resolve()) =>
    cache.load(name.slice(0, 1), { missing, chunks: missing, dimensions: 32 }, async () => {
      order.push(name);
      await until;
    });
  const first = gate();
  const large = ['a1', 'a2', 'b1'].map((name) => load(name, 400, name === 'a1' ? first.promise : undefined));
  await load('c1', 20);
  expect(order).toEqual(['a1', 'c1']);
  first.open();
  await Promise.all(large);
  expect(order).toHaveLength(4);
  await expect(load('d1', 10_000)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});
