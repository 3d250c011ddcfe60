import type { SearchMode } from '../../contracts/api/knowledge/knowledge-query.js';
import type { Db } from '../../db/pool.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { Embedder } from '../embedder.js';
import type { KnowledgeQuery, KnowledgeResults, SearchScope } from '../search-query.js';
import type { BaseKey, IndexMemory } from './index/index-cache.js';
import { DatabaseVectors, makeVectorIndex, preparePgvector, type VectorRow } from './rank/database-vectors.js';
import { readResults } from './result-rows.js';
import { SearchThread, turnsOfSearches } from './search-thread-client.js';
import type { SearchReply } from './searcher.js';

/** A source may be replaced between a search and the reading of its chunks; then the search is made again, until so many milliseconds are over. */
const REPEATED_MS = 5_000;
const EMBED_TIMEOUT_MS = 30_000;
/** Queries that are embedded at once. */
const EMBEDDED_AT_ONCE = 8;

const DROP_EVERY_MS = 30_000;

export interface SearchOptions {
  db: Db;
  /** The login that runs the migrations: it prepares pgvector, and the search thread has connections of its own. */
  databaseUrl: string;
  /** Undefined: search is by words. */
  embedder: Embedder | undefined;
  /** Memory for indexes, in MiB. */
  cacheMb: number;
  /** See `SearcherOptions`. */
  exactChunksMax?: number;
  /** How often what other processes have deleted is dropped from memory, in milliseconds; 30000 by default. */
  dropEveryMs?: number;
  log: Logger;
}

/** Searches knowledge bases. One for each process that answers queries. */
export interface KnowledgeSearch {
  /**
   * Finds the chunks that answer a query best, with citations. Sees every change that was committed before.
   * @throws PlatformError `SERVICE_UNAVAILABLE` for `semantic` without an embedder, or a knowledge base too large for memory; `BAD_GATEWAY` when
   * the provider of embeddings fails; `RATE_LIMITED` when too many searches wait
   */
  search(scope: SearchScope, query: KnowledgeQuery): Promise<KnowledgeResults>;
  /**
   * Writes the vectors of chunks that were taken in to where the database searches them: an index takes some milliseconds for each, for which
   * no query should wait. A search writes those that are missing. Nothing without pgvector.
   */
  writeVectors(tenantId: string, namespace: string, chunks: readonly VectorRow[]): Promise<void>;
  /** Drops what this process keeps in memory of a knowledge base that was deleted. Other processes do so within half a minute. */
  forget(key: BaseKey): Promise<void>;
  /** What this process keeps in memory. */
  memory(): Promise<IndexMemory>;
  close(): Promise<void>;
}

/** The mode of a query, before it is known whether anything has vectors. */
function modeOf(asked: SearchMode | undefined, embedder: Embedder | undefined): SearchMode {
  if (embedder) return asked ?? 'hybrid';
  if (asked === 'semantic')
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'There is no embedding model, so knowledge is searched by words only.',
    );
  return 'lexical';
}

/** What the answer says: a hybrid search of chunks without any vector of the present model was one by words. */
function modeUsed(mode: SearchMode, { chunks, chunksWithVector }: SearchReply): SearchMode {
  return mode === 'hybrid' && chunks > 0 && chunksWithVector === 0 ? 'lexical' : mode;
}

/** Starts nothing yet: the thread that searches starts with the first search. */
export async function createKnowledgeSearch(options: SearchOptions): Promise<KnowledgeSearch> {
  const { db, databaseUrl, embedder, cacheMb, dropEveryMs = DROP_EVERY_MS, log } = options;
  const usesPgvector = embedder ? await preparePgvector(databaseUrl, log) : false;
  const model = embedder?.model ?? null;
  const vectors = usesPgvector ? new DatabaseVectors(db) : undefined;
  const cacheBytes = cacheMb * 1024 * 1024;
  const { exactChunksMax } = options;
  const data = { databaseUrl, model, usesPgvector, cacheBytes, exactChunksMax, dropEveryMs };
  const thread = new SearchThread(data, log);

  // The embedder serves all tenants in one queue. These turns are not those of the thread, so that words are found while a provider is slow.
  const embeddings = turnsOfSearches(EMBEDDED_AT_ONCE);

  const embed = async (by: Embedder, query: string): Promise<Float32Array | undefined> => {
    const late = AbortSignal.timeout(EMBED_TIMEOUT_MS);
    try {
      const [vector] = await by.embed([query], late, 'query');
      return vector;
    } catch (error) {
      if (error instanceof PlatformError || !late.aborted) throw error;
      const message = `The embeddings provider failed: no answer within ${EMBED_TIMEOUT_MS / 1_000} s.`;
      throw new PlatformError('BAD_GATEWAY', message, { cause: error });
    }
  };

  // Begun after the first search by meaning, for two reasons: only a vector says how many dimensions a provider's model has; and that search
  // has written the missing vectors, which are indexed much faster together.
  let indexing: Promise<void> | undefined;
  const closing = new AbortController();
  const makeIndex = (dimensions: number): Promise<void> =>
    makeVectorIndex(databaseUrl, dimensions, closing.signal).catch((error: unknown) => {
      if (closing.signal.aborted) return;
      log.warn({ err: errorMessage(error) }, 'no index of vectors was made: large knowledge bases are searched slowly');
    });

  return {
    search: async ({ tenantId, namespaces }, { query, topK, minScore, mode: asked, filters }) => {
      const mode = modeOf(asked, embedder);
      const usesVector = embedder && mode !== 'lexical';
      const vector = usesVector ? await embeddings.run(tenantId, () => embed(embedder, query)) : undefined;
      const request = { tenantId, namespaces, query, vector, mode, minScore, limit: topK, filters };
      const repeatedUntil = performance.now() + REPEATED_MS;
      for (;;) {
        const reply = await thread.search(request, embedder?.dimensions ?? 0);
        if (usesPgvector && vector) indexing ??= makeIndex(vector.length);
        const { found, total } = reply;
        const results = found.length > 0 ? await db.tenant(tenantId, (tx) => readResults(tx, tenantId, found)) : [];
        if (results.length < found.length && performance.now() < repeatedUntil) continue;
        return { results, total_candidates: total, mode_used: modeUsed(mode, reply) };
      }
    },
    writeVectors: async (...chunks) => vectors?.write(...chunks),
    forget: (key) => thread.forget(key),
    memory: () => thread.memory(),
    close: async () => {
      closing.abort();
      await Promise.all([thread.close(), indexing]);
    },
  };
}
