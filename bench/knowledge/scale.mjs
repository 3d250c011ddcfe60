/** What a query costs as a knowledge base grows, whether it finds what is nearest, and what memory it takes. */
import { setTimeout as delay } from 'node:timers/promises';
import { createKnowledgeSearch } from '../../dist/knowledge/search/search.js';
import { quantile } from '../harness/measure.mjs';
import { DIMENSIONS, fillBase, isRare, random, textOf, vectorOf } from './fill.mjs';

const MODEL = 'bench';
const CACHE_MB = 2_048;
const TOP_K = 10;
const INDEX = `knowledge_vectors_hnsw_${DIMENSIONS}`;
const POLL_MS = 200;
const RARE = { tags_any: ['rare'] };

/** Takes the vectors that are given to it in turn: what the model costs is measured apart. */
function givenVectors() {
  const embedder = { kind: 'local', model: MODEL, dimensions: DIMENSIONS, next: undefined };
  embedder.embed = async () => [embedder.next];
  return embedder;
}

/** The nearest chunks, by comparing all in double precision. @returns the cosine of the last of them */
function exactThreshold(vectors, query, accepts) {
  const best = [];
  for (const [place, vector] of vectors.entries()) {
    if (!accepts(place)) continue;
    let cosine = 0;
    for (let at = 0; at < DIMENSIONS; at++) cosine += query[at] * vector[at];
    if (best.length === TOP_K && cosine <= best[0]) continue;
    if (best.length === TOP_K) best.shift();
    const place_ = best.findIndex((one) => one > cosine);
    best.splice(place_ < 0 ? best.length : place_, 0, cosine);
  }
  return best[0];
}

/** Whether the vectors of searches are in the database, with pgvector. */
async function usesPgvector(client) {
  const { rows } = await client.query(`SELECT to_regclass('knowledge_vectors') AS found`);
  return rows[0].found !== null;
}

/** Waits for the index of vectors that the first search has begun. */
async function indexMade(client) {
  const valid = `SELECT FROM pg_index WHERE indexrelid = to_regclass('${INDEX}') AND indisvalid`;
  while ((await client.query(valid)).rowCount === 0) await delay(POLL_MS);
}

/**
 * @param {import('pg').Client} client the owner of the tables
 * @returns rows of the table, one for each size
 */
export async function measureScale({ client, db, databaseUrl, tenantId, sizes, queries, log, progress }) {
  const rows = [];
  for (const size of sizes) {
    progress(`${size} chunks: writing`);
    const namespace = `bench-${size}`;
    // Each size is as the first one of its database: its vectors are written by the first query, and indexed afterwards.
    if (await usesPgvector(client)) await client.query(`TRUNCATE knowledge_vectors; DROP INDEX IF EXISTS ${INDEX}`);
    const vectors = await fillBase(client, { tenantId, namespace, chunks: size, model: MODEL });
    const embedder = givenVectors();
    const search = await createKnowledgeSearch({ db, databaseUrl, embedder, cacheMb: CACHE_MB, log });
    try {
      progress(`${size} chunks: measuring`);
      const base = { search, embedder, vectors, tenantId, namespace, queries, client };
      const row = { size, ...(await measureBase(base)) };
      progress(`${size} chunks: hybrid ${row.hybridMs.toFixed(1)} ms, recall ${row.recall.toFixed(3)}`);
      rows.push(row);
    } finally {
      await search.close();
    }
  }
  return rows;
}

async function measureBase({ search, embedder, vectors, tenantId, namespace, queries, client }) {
  const next = random(99);
  const ask = async (mode, filters) => {
    embedder.next = vectorOf(next);
    const query = textOf(next, 8);
    const from = performance.now();
    const answer = await search.search(
      { tenantId, namespaces: [namespace] },
      { query, topK: TOP_K, minScore: 0, mode, ...(filters && { filters }) },
    );
    return { ...answer, ms: performance.now() - from, vector: embedder.next };
  };
  const before = process.memoryUsage().rss;
  const from = performance.now();
  await untilLoaded(() => ask('hybrid'));
  const loadMs = performance.now() - from;
  const isIndexed = await usesPgvector(client);
  if (isIndexed) await indexMade(client);
  const indexMs = isIndexed ? performance.now() - from - loadMs : null;
  const figures = {
    loadMs,
    indexMs,
    rssBytes: process.memoryUsage().rss - before,
    cacheBytes: (await search.memory()).bytes,
  };
  for (const mode of ['hybrid', 'semantic', 'lexical']) {
    const times = [];
    for (let n = 0; n < queries; n++) times.push((await ask(mode)).ms);
    figures[`${mode}Ms`] = quantile(times, 0.5);
  }
  figures.filteredMs = await medianOf(queries, () => ask('hybrid', RARE));
  figures.recall = await recallOf(
    queries,
    () => ask('semantic'),
    vectors,
    () => true,
  );
  figures.filteredRecall = await recallOf(queries, () => ask('semantic', RARE), vectors, isRare);
  return figures;
}

/** Queries are answered with 503 while a large base is read into memory. */
async function untilLoaded(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!/still being read/.test(error.message)) throw error;
    }
  }
}

async function medianOf(count, ask) {
  const times = [];
  for (let n = 0; n < count; n++) times.push((await ask()).ms);
  return quantile(times, 0.5);
}

/** The share of results that are as near as the tenth nearest chunk. Scores have four digits. */
async function recallOf(count, ask, vectors, accepts) {
  let found = 0;
  let wanted = 0;
  for (let n = 0; n < Math.min(count, 20); n++) {
    const { results, vector } = await ask();
    const least = exactThreshold(vectors, vector, accepts);
    const candidates = vectors.reduce((sum, _, place) => sum + (accepts(place) ? 1 : 0), 0);
    wanted += Math.min(TOP_K, candidates);
    found += results.filter(({ scores }) => scores.semantic >= least - 0.0001).length;
  }
  return found / wanted;
}
