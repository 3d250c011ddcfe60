import { beforeAll, describe, expect, test } from 'vitest';
import type { SearchMode } from '../../../../contracts/api/knowledge/knowledge-query.js';
import { createOutbound } from '../../../../http/outbound.js';
import type { KnowledgeSearch } from '../../../../knowledge/search/search.js';
import type { SearchScope } from '../../../../knowledge/search-query.js';
import { cleanUp } from '../../../setup/clean-up.js';
import { insertTenant } from '../../../setup/core.js';
import { freshDatabase } from '../../../setup/database.js';
import { testProvider } from '../../../setup/embeddings.js';
import { knowledgeOf } from '../../../setup/knowledge.js';
import { ask, deleteSource, insertBase, insertSource, knowledgeSearch } from '../../../setup/knowledge-rows.js';
import { pgvectorDatabase } from '../../../setup/pgvector.js';
import { until } from '../../../setup/until.js';

const inMemory = await freshDatabase();
const withPgvector = await pgvectorDatabase();
const databases = [inMemory, withPgvector];
const { embedder } = await testProvider();
await embedder.embed(['dimensions'], AbortSignal.timeout(10_000));
const memory = await knowledgeSearch(inMemory, embedder);
const pgvector = await knowledgeSearch(withPgvector, embedder);
const searches = [memory, pgvector];

const WORDS =
  'anchor boiler crane deck engine ferry gull harbour inlet jetty keel lamp mast net oar pier quay rope sail tide'.split(
    ' ',
  );
/** A text of a few words, the same for the same number. */
const textOf = (n: number): string =>
  Array.from({ length: 4 + (n % 5) }, (_, at) => WORDS[(n * 7 + at * at * (1 + (n % 3))) % WORDS.length]).join(' ');

/** The same base in both databases: 600 chunks in 120 sources, some of them stale. @param from another number makes other texts */
async function fill(from = 0): Promise<SearchScope> {
  const tenantId = await insertTenant(inMemory);
  await insertTenant(withPgvector, tenantId);
  for (const database of databases) {
    await insertBase(database, tenantId, 'port');
    for (let source = 0; source < 120; source++)
      await insertSource(database, {
        tenantId,
        namespace: 'port',
        sourceId: `s${source}`,
        texts: Array.from({ length: 5 }, (_, n) => textOf(from + source * 5 + n)),
        tags: source % 3 === 0 ? ['third'] : [],
        ...(source % 20 === 7 && { model: 'another' }),
      });
  }
  return { tenantId, namespaces: ['port'] };
}

const scope = await fill();

test('the database without pgvector searches in memory, the other one in the database', async () => {
  const vectors = (database: typeof inMemory) => database.value("SELECT to_regclass('knowledge_vectors')::text");
  await ask(pgvector, scope, 'harbour');
  expect(await vectors(inMemory)).toBeNull();
  expect(await vectors(withPgvector)).toBe('knowledge_vectors');
  const rows = await withPgvector.query('SELECT FROM knowledge_vectors WHERE tenant_id = $1', [scope.tenantId]);
  expect(rows).toHaveLength(114 * 5); // the stale ones have no vector of this model
});

test('the first search makes an index for vectors of the provider, also where an attempt was cut off', async () => {
  const index = "pg_index WHERE indexrelid = to_regclass('knowledge_vectors_hnsw_32')";
  const valid = () => withPgvector.value<boolean>(`SELECT indisvalid FROM ${index}`);
  await ask(pgvector, scope, 'harbour');
  expect(await until(valid, { what: 'the index' })).toBe(true);
  await withPgvector.query(
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('knowledge_vectors_hnsw_32')",
  );
  await ask(await knowledgeSearch(withPgvector, embedder), scope, 'harbour');
  expect(await until(valid, { what: 'another index' })).toBe(true);
});

const QUERIES = [
  ...['harbour crane', 'a lamp on the mast', 'tide', 'rope and sail at the quay', 'nothing of this'],
  'engine boiler deck',
];

type Answer = Awaited<ReturnType<typeof ask>>;

/** Asks both searches the same, and compares what they answer. */
async function expectSame(
  one: KnowledgeSearch,
  other: KnowledgeSearch,
  of: SearchScope,
  mode: SearchMode,
): Promise<void> {
  for (const query of QUERIES)
    for (const more of [{}, { filters: { tags_any: ['third'] } }, { minScore: 0.5, topK: 50 }]) {
      const [ofMemory, ofDatabase] = (await Promise.all(
        [one, other].map((search) => ask(search, of, query, { mode, topK: 20, ...more })),
      )) as [Answer, Answer];
      const scores = ({ results }: Answer) => results.map(({ score }) => score);
      expect(ofDatabase.mode_used).toBe(ofMemory.mode_used);
      expect(scores(ofDatabase)).toHaveLength(scores(ofMemory).length);
      for (const [index, score] of scores(ofMemory).entries()) expect(scores(ofDatabase)[index]).toBeCloseTo(score, 3);
      // Chunks of the same score may change places, and at the end of the list others of that score may stand.
      const last = scores(ofMemory).at(-1) ?? 0;
      const certain = ({ results }: Answer) =>
        results
          .filter(({ score }) => score > last + 0.001)
          .map(({ source_id, text }) => `${source_id} ${text}`)
          .sort();
      expect(certain(ofDatabase)).toEqual(certain(ofMemory));
    }
}

const MODES: SearchMode[] = ['hybrid', 'semantic', 'lexical'];

test.each(MODES)('%s search gives the same results in both', async (mode) => {
  await expectSame(memory, pgvector, scope, mode);
});

describe('beyond the chunks up to which all vectors are compared', () => {
  let indexed: KnowledgeSearch;
  let other: SearchScope;
  const scans = async () => {
    const count = "SELECT idx_scan::int FROM pg_stat_user_indexes WHERE indexrelname = 'knowledge_vectors_hnsw_32'";
    return (await withPgvector.value<number>(count)) ?? 0;
  };
  beforeAll(async () => {
    other = await fill(7); // another tenant has other texts under the same names
    // The planner takes the index of a large table, and sorts the few rows of this one; connections opened from now on do not.
    await withPgvector.query('ALTER DATABASE postgres SET enable_sort = off');
    indexed = await knowledgeSearch(withPgvector, embedder, { exactChunksMax: 100 });
    return () => withPgvector.query('ALTER DATABASE postgres RESET enable_sort').then(() => undefined);
  });

  test.each(MODES)(
    'the index gives two tenants with equal names the same results as memory, each its own (%s)',
    async (mode) => {
      const before = await scans();
      for (const of of [scope, other]) await expectSame(memory, indexed, of, mode);
      if (mode !== 'lexical')
        expect(await until(async () => (await scans()) > before, { what: 'scans of the index' })).toBe(true);
    },
  );

  test('a filter that leaves next to nothing falls back to comparing all', async () => {
    for (const of of [scope, other]) {
      const query = { mode: 'semantic' as const, topK: 20, filters: { source_ids: ['s3'] } };
      const [ofMemory, ofDatabase] = await Promise.all([
        ask(memory, of, 'harbour crane', query),
        ask(indexed, of, 'harbour crane', query),
      ]);
      expect(ofDatabase.results).toHaveLength(5);
      expect(ofDatabase.results.map(({ text }) => text).sort()).toEqual(
        ofMemory.results.map(({ text }) => text).sort(),
      );
    }
  });
});

test('deleted and replaced sources are gone with their vectors', async () => {
  const put = (text: string) =>
    insertSource(withPgvector, { tenantId: scope.tenantId, namespace: 'port', sourceId: 'extra', texts: [text] });
  const zeppelins = async () =>
    (await ask(pgvector, scope, 'zeppelin', { minScore: 0.3 })).results.map(({ text }) => text);
  await put('zeppelin over the harbour');
  expect(await zeppelins()).toEqual(['zeppelin over the harbour']);
  await put('zeppelin behind the pier');
  expect(await zeppelins()).toEqual(['zeppelin behind the pier']);
  await deleteSource(withPgvector, scope.tenantId, 'port', 'extra');
  expect(await zeppelins()).toEqual([]);
  expect(await withPgvector.query(`SELECT FROM knowledge_vectors WHERE source_id = 'extra'`)).toEqual([]);
});

test('vectors of other dimensions under the same name are stale in both', async () => {
  const { tenantId } = scope;
  for (const [place, database] of databases.entries()) {
    await insertBase(database, tenantId, 'short');
    const short = { tenantId, namespace: 'short', sourceId: 'doc', texts: ['harbour crane'] };
    await insertSource(database, { ...short, vectors: [Float32Array.of(1, 0)] });
    const search = searches[place] as (typeof searches)[number];
    const inShort = { tenantId, namespaces: ['short'] };
    expect(await ask(search, inShort, 'harbour')).toMatchObject({ mode_used: 'lexical', results: [{}] });
    await insertSource(database, short);
    expect(await ask(search, inShort, 'harbour')).toMatchObject({ mode_used: 'hybrid', results: [{}] });
  }
});

test('a tenant does not see the vectors of another', async () => {
  const other = await insertTenant(withPgvector);
  await insertBase(withPgvector, other, 'port');
  const theirs = await ask(pgvector, { tenantId: other, namespaces: ['port'] }, 'harbour');
  expect(theirs).toMatchObject({ results: [], total_candidates: 0 });
  const seen = await withPgvector.db().tenant(other, (tx) => tx.query('SELECT FROM knowledge_vectors'));
  expect(seen).toEqual([]);
});

test('what is taken in has its vectors in the database before it is searched', async () => {
  const outbound = createOutbound({ allowCidrs: [] });
  cleanUp(() => outbound.close());
  const knowledge = await knowledgeOf(withPgvector, outbound, embedder);
  const writer = { tenantId: scope.tenantId, credentialId: 'cred_1', full: true, name: 'cred_1' };
  await knowledge.create(writer, { namespace: 'taken-in' });
  const vectors = () =>
    withPgvector.query<{ source_id: string; matches: boolean }>(
      `SELECT source_id, v.version = s.version AS matches FROM knowledge_vectors v JOIN knowledge_sources s USING (tenant_id, namespace, source_id)
        WHERE namespace = 'taken-in'`,
    );
  for (const content of ['lanterns at the jetty', 'lanterns at the inlet']) {
    await knowledge.ingest(writer, { namespace: 'taken-in', source_id: 'one', content });
    expect(await vectors()).toEqual([{ source_id: 'one', matches: true }]);
  }
  const inlet = { namespace: 'taken-in', query: 'inlet lanterns', mode: 'semantic' as const };
  const { results } = await knowledge.query(writer, inlet);
  expect(results.map(({ text }) => text)).toEqual(['lanterns at the inlet']);
});

test('a second process finds what the first one wrote, and starts beside it', async () => {
  const start = () => knowledgeSearch(withPgvector, embedder);
  for (const search of await Promise.all([start(), start()])) {
    const { results } = await ask(search, scope, 'harbour crane');
    expect(results).toEqual((await ask(pgvector, scope, 'harbour crane')).results);
  }
});
