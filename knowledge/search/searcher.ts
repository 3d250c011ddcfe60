import pLimit from 'p-limit';
import type { SearchFilters, SearchMode } from '../../contracts/api/knowledge/knowledge-query.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { type BaseKey, IndexCache, type IndexMemory } from './index/index-cache.js';
import { IndexLoader } from './index/index-loader.js';
import { readDeleted, readFiltered, readRevisions } from './index/index-rows.js';
import { forgetTerms, queryTerms } from './index/terms.js';
import { DatabaseVectors } from './rank/database-vectors.js';
import { type Candidate, rankAll } from './rank/rank.js';
import { rankWithDatabase } from './rank/rank-database.js';

/**
 * Knowledge bases that are compared at once, and of one tenant: each holds some numbers for every chunk. Of one tenant 16 are here at most
 * (4 searches, 4 bases each) and those of searches that failed meanwhile, so `waitingMax` is hardly ever reached.
 */
const COMPARED_AT_ONCE = { limit: 8, perKey: 4, waitingMax: 64 };

/** Knowledge bases of one query that are read and compared at once. */
const BASES_AT_ONCE = 4;
/** How long a query waits for all its knowledge bases to be read into memory, in milliseconds; 503 beyond. */
const WAIT_MAX_MS = 20_000;

const loading = (): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', 'The knowledge base is still being read into memory. Try again.');

/** A query as the search thread gets it. */
export interface SearchRequest {
  tenantId: string;
  namespaces: readonly string[];
  query: string;
  /** The query's vector; undefined in lexical mode. */
  vector: Float32Array | undefined;
  mode: SearchMode;
  minScore: number;
  limit: number;
  filters: SearchFilters | undefined;
}

/** A chunk of one of the knowledge bases. */
export type FoundChunk = Candidate & { namespace: string };

export interface SearchReply {
  /** The best first. */
  found: FoundChunk[];
  total: number;
  /** Chunks of all the knowledge bases that passed the filters, and those with a vector of the present model. */
  chunks: number;
  chunksWithVector: number;
}

export interface SearcherOptions {
  db: Pick<Db, 'tenant' | 'system'>;
  /** The embedder's; null without. */
  model: string | null;
  usesPgvector: boolean;
  cacheBytes: number;
  /** With pgvector: chunks of a knowledge base up to which all vectors are compared; 50000 by default. */
  exactChunksMax?: number | undefined;
  /** How long a query waits for its knowledge bases to be read, in milliseconds; 20000 by default. */
  waitMaxMs?: number;
}

/** Searches knowledge bases with indexes in memory, which it brings up to date before each query. */
export class Searcher {
  readonly #cache: IndexCache;
  /** Not those of the thread, so that nobody stands behind searches that wait for an index. */
  readonly #turns = new FairSemaphore({
    ...COMPARED_AT_ONCE,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many searches at once.'),
  });
  readonly #vectors: DatabaseVectors | undefined;

  constructor(private readonly options: SearcherOptions) {
    const { db, model, usesPgvector, exactChunksMax } = options;
    const vectors = usesPgvector ? new DatabaseVectors(db, exactChunksMax) : undefined;
    this.#vectors = vectors;
    const loader: IndexLoader = new IndexLoader({
      db,
      model,
      keepsVectors: !vectors,
      ...(vectors && { onVectors: (...read) => vectors.write(...read) }),
      inTurn: (...load) => this.#cache.load(...load),
      onGrowth: (index) => this.#cache.grow(index),
    });
    this.#cache = new IndexCache(loader, options.cacheBytes);
  }

  /** What is kept in memory. */
  get memory(): IndexMemory {
    return this.#cache.memory;
  }

  /** Drops what is kept in memory of a knowledge base: it was deleted. */
  forget(key: BaseKey): void {
    if (this.#cache.forget(key)) forgetTerms();
  }

  /** Drops what is kept in memory of knowledge bases that were deleted, by whichever process, and of deleted tenants. */
  async dropDeleted(): Promise<void> {
    const keys = this.#cache.keys();
    if (keys.length === 0) return;
    for (const key of await this.options.db.system((tx) => readDeleted(tx, keys))) this.forget(key);
  }

  /**
   * @param dimensions of the present model's vectors; 0 without an embedder
   * @throws PlatformError `SERVICE_UNAVAILABLE` when a knowledge base is larger than the memory for indexes, or too many are being loaded
   */
  async search(request: SearchRequest, dimensions: number): Promise<SearchReply> {
    const { tenantId, namespaces } = request;
    const revisions = await this.options.db.tenant(tenantId, (tx) => readRevisions(tx, tenantId, namespaces));
    const reply: SearchReply = { found: [], total: 0, chunks: 0, chunksWithVector: 0 };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(loading()), this.options.waitMaxMs ?? WAIT_MAX_MS);
    const limit = pLimit(BASES_AT_ONCE);
    const searchOne = async (namespace: string): Promise<void> => {
      const key = { tenantId, namespace };
      const index = await this.#cache.at(key, revisions.get(namespace), dimensions, late.signal);
      const ranked = await this.#turns.run(tenantId, () => this.#rank(request, namespace, index));
      const { candidates, total, chunks, chunksWithVector } = ranked;
      reply.found.push(...candidates.map((candidate) => ({ ...candidate, namespace })));
      reply.total += total;
      reply.chunks += chunks;
      reply.chunksWithVector += chunksWithVector;
    };
    try {
      await Promise.all([...new Set(namespaces)].map((namespace) => limit(searchOne, namespace)));
    } finally {
      clearTimeout(timer);
      late.abort(loading()); // where one failed, the others are of no use
    }
    reply.found = reply.found.sort((one, other) => other.score - one.score).slice(0, request.limit);
    return reply;
  }

  async #rank(request: SearchRequest, namespace: string, index: Awaited<ReturnType<IndexCache['at']>>) {
    const { tenantId, filters, vector } = request;
    const only =
      filters && (await this.options.db.tenant(tenantId, (tx) => readFiltered(tx, tenantId, namespace, filters)));
    const query = { ...request, terms: queryTerms(request.query), ...(only && { only }) };
    const { model } = this.options;
    if (!this.#vectors || !vector || model === null) return rankAll(index, query);
    const scope = { tenantId, namespace, model, chunks: index.chunks, ...(only && { only }) };
    return rankWithDatabase(index, { ...query, vector }, this.#vectors, scope);
  }
}
