import type { SearchFilters, SearchMode } from '../../contracts/api/knowledge/knowledge-query.js';
import type { Db } from '../../db/pool.js';
import { DatabaseVectors } from './database-vectors.js';
import { IndexCache } from './index-cache.js';
import { IndexLoader } from './index-loader.js';
import { readFiltered, readRevisions } from './index-rows.js';
import { type Candidate, rankAll } from './rank.js';
import { rankWithDatabase } from './rank-database.js';
import { queryTerms } from './terms.js';

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
  /** Chunks of all the knowledge bases, and those with a vector of the present model. */
  chunks: number;
  chunksWithVector: number;
}

export interface SearcherOptions {
  db: Pick<Db, 'tenant'>;
  /** The embedder's; null without. */
  model: string | null;
  usesPgvector: boolean;
  cacheBytes: number;
}

/** Searches knowledge bases with indexes in memory, which it brings up to date before each query. */
export class Searcher {
  readonly #cache: IndexCache;
  readonly #vectors: DatabaseVectors | undefined;

  constructor(private readonly options: SearcherOptions) {
    const { db, model, usesPgvector } = options;
    const vectors = usesPgvector ? new DatabaseVectors(db) : undefined;
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

  /** Memory that the indexes take. */
  get cacheBytes(): number {
    return this.#cache.bytes;
  }

  /**
   * @param dimensions of the present model's vectors; 0 without an embedder
   * @throws PlatformError `SERVICE_UNAVAILABLE` when a knowledge base is larger than the memory for indexes, or too many are being loaded
   */
  async search(request: SearchRequest, dimensions: number): Promise<SearchReply> {
    const { tenantId, namespaces } = request;
    const revisions = await this.options.db.tenant(tenantId, (tx) => readRevisions(tx, tenantId, namespaces));
    const reply: SearchReply = { found: [], total: 0, chunks: 0, chunksWithVector: 0 };
    for (const namespace of new Set(namespaces)) {
      const index = await this.#cache.at({ tenantId, namespace }, revisions.get(namespace), dimensions);
      const { candidates, total } = await this.#rank(request, namespace, index);
      reply.found.push(...candidates.map((candidate) => ({ ...candidate, namespace })));
      reply.total += total;
      reply.chunks += index.chunks;
      reply.chunksWithVector += index.chunksWithVector;
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
