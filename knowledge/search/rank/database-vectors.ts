import { Client } from 'pg';
import type { Db, Tx } from '../../../db/pool.js';
import { errorMessage } from '../../../runtime/errors.js';
import type { Logger } from '../../../runtime/logger.js';
import type { ChunkRow } from '../index/index-rows.js';

/** Any numbers, the same in every process: the table is made once, and one process at a time makes an index. */
const SETUP_LOCK = 74_032_118;
const INDEX_LOCK = 74_032_119;
/** Chunks of a knowledge base up to which all are compared; beyond, the HNSW index finds nearly all of the best. */
const EXACT_CHUNKS_MAX = 50_000;
/** What an HNSW index of pgvector can hold. */
const INDEXED_DIMENSIONS_MAX = 2_000;
/** Candidates that a search of the index goes through at a time: recall@10 of 0.995 on 200,000 chunks, 0.985 with 200. */
const EF_SEARCH = 400;
/** Vectors of one statement: an index takes some milliseconds for each, and writing one as text takes a tenth of one. */
const VECTORS_AT_ONCE = 100;

/**
 * Vectors for pgvector, beside the chunks, whose `embedding` remains the truth: rows are written when a source has been taken in, else when a
 * process first reads it to search it, and go with their chunks. `version` and `model` say which chunk of that place a vector is of.
 */
const TABLE = `
  CREATE EXTENSION IF NOT EXISTS vector;
  CREATE TABLE knowledge_vectors (
    tenant_id text NOT NULL, namespace text COLLATE "C" NOT NULL, source_id text COLLATE "C" NOT NULL, ordinal integer NOT NULL,
    version bigint NOT NULL, model text NOT NULL, dim integer NOT NULL, embedding vector NOT NULL,
    PRIMARY KEY (tenant_id, namespace, source_id, ordinal),
    FOREIGN KEY (tenant_id, namespace, source_id, ordinal) REFERENCES knowledge_chunks ON DELETE CASCADE
  );
  ALTER TABLE knowledge_vectors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  CREATE POLICY one_tenant ON knowledge_vectors TO fleet_app USING (tenant_id = current_tenant());
  CREATE POLICY whole_platform ON knowledge_vectors TO fleet_system USING (true);
  GRANT SELECT, INSERT, UPDATE, DELETE ON knowledge_vectors TO fleet_app, fleet_system;`;

/** Whether the server has pgvector 0.8 or newer, whose index goes on where filters leave too little. */
const AVAILABLE = `
  SELECT FROM pg_available_extensions
   WHERE name = 'vector' AND string_to_array(coalesce(installed_version, default_version), '.')::int[] >= '{0,8}'`;

/**
 * Makes the table of vectors where the server has pgvector.
 * @param url the login that runs the migrations
 * @returns whether the database can search vectors
 */
export async function preparePgvector(url: string, log: Pick<Logger, 'info' | 'warn'>): Promise<boolean> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query(AVAILABLE);
    if (!rowCount) return false;
    await client.query('SELECT pg_advisory_lock($1)', [SETUP_LOCK]);
    // Made as a whole. It is not touched again: that would wait for an index that is being built, and the index for that.
    const { rows } = await client.query<{ found: string | null }>(`SELECT to_regclass('knowledge_vectors') AS found`);
    if (!rows[0]?.found) await client.query(TABLE);
    log.info({}, 'knowledge is searched with pgvector');
    return true;
  } catch (error) {
    // A login without the right to create extensions, for example: search in memory does without.
    log.warn({ err: errorMessage(error) }, 'pgvector cannot be used');
    return false;
  } finally {
    await client.end();
  }
}

/**
 * Makes the HNSW index for vectors of these dimensions, unless it is there or another process is at it. Takes as long as the vectors are many,
 * and holds up neither searches nor writes meanwhile.
 * @param url the login that runs the migrations
 * @throws the signal's reason, and what the database says
 */
export async function makeVectorIndex(url: string, dimensions: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (dimensions > INDEXED_DIMENSIONS_MAX) return;
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined); // its statement fails with it
  const stop = (): void => void client.end();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await client.connect();
    // Not waited for: a statement that waits is one that the making of the index would wait for.
    const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [INDEX_LOCK]);
    if (!rows[0]?.locked) return;
    const name = `knowledge_vectors_hnsw_${dimensions}`;
    // What is left of one whose making was cut off.
    const { rowCount: broken } = await client.query(
      'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid',
      [name],
    );
    if (broken) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await client.query(
      `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ON knowledge_vectors
        USING hnsw ((embedding::vector(${dimensions})) vector_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE dim = ${dimensions}`,
    );
  } finally {
    signal.removeEventListener('abort', stop);
    await client.end();
  }
}

/** A chunk with its vector, if it has one, as `knowledge_chunks` holds it. */
export type VectorRow = Pick<ChunkRow, 'source_id' | 'ordinal' | 'version' | 'model' | 'embedding'>;

/** Which chunk, and how near it is to the query. */
export interface NearChunk {
  source_id: string;
  ordinal: number;
  version: number;
  cosine: number;
}

const literal = (vector: Float32Array): string => `[${vector.join(',')}]`;

function floats(embedding: Buffer): Float32Array {
  return new Float32Array(new Uint8Array(embedding).buffer);
}

/** What to search among. */
export interface VectorScope {
  tenantId: string;
  namespace: string;
  model: string;
  /** Chunks of the knowledge base, which decide how to search. */
  chunks: number;
  /** The sources that pass the filters; all without. */
  only?: ReadonlySet<string>;
}

/** By which a vector is known to be that of a chunk: lists of sources, ordinals, versions and models. */
const keysOf = (rows: readonly VectorRow[]): unknown[][] =>
  (['source_id', 'ordinal', 'version', 'model'] as const).map((name) => rows.map((row) => row[name]));

const LIVE = `FROM knowledge_vectors v JOIN knowledge_sources s USING (tenant_id, namespace, source_id, version)
  WHERE v.tenant_id = $1 AND v.namespace = $2 AND v.model = $3`;

/** Vectors in the database, searched with pgvector. */
export class DatabaseVectors {
  /** @param exactChunksMax chunks of a knowledge base up to which all are compared */
  constructor(
    private readonly db: Pick<Db, 'tenant'>,
    private readonly exactChunksMax: number = EXACT_CHUNKS_MAX,
  ) {}

  /** Writes the vectors of chunks, unless they are there. A chunk that is gone meanwhile is left out. */
  async write(tenantId: string, namespace: string, chunks: readonly VectorRow[]): Promise<void> {
    const rows = chunks.filter(({ embedding }) => embedding !== null);
    for (let from = 0; from < rows.length; from += VECTORS_AT_ONCE) {
      const part = rows.slice(from, from + VECTORS_AT_ONCE);
      // Another process may have written them: a vector is some 4 KB of SQL, its key is not.
      const missing = await this.#missing(tenantId, namespace, part);
      if (missing.length > 0) await this.#write(tenantId, namespace, missing);
    }
  }

  /** Those of the chunks whose vectors are not there. */
  async #missing(tenantId: string, namespace: string, rows: readonly VectorRow[]): Promise<VectorRow[]> {
    const written = await this.db.tenant(tenantId, (tx) =>
      tx.query<{ n: number }>(
        `SELECT n::int FROM unnest($3::text[], $4::int[], $5::bigint[], $6::text[]) WITH ORDINALITY
            AS w (source_id, ordinal, version, model, n)
          JOIN knowledge_vectors v USING (source_id, ordinal, version, model) WHERE v.tenant_id = $1 AND v.namespace = $2`,
        [tenantId, namespace, ...keysOf(rows)],
      ),
    );
    const places = new Set(written.map(({ n }) => n - 1));
    return rows.filter((_, place) => !places.has(place));
  }

  async #write(tenantId: string, namespace: string, rows: readonly VectorRow[]): Promise<void> {
    const vectors = rows.map(({ embedding }) => floats(embedding as Buffer));
    await this.db.tenant(tenantId, (tx) =>
      tx.query(
        `INSERT INTO knowledge_vectors (tenant_id, namespace, source_id, ordinal, version, model, dim, embedding)
        SELECT $1, $2, n.source_id, n.ordinal, n.version, n.model, n.dim, n.embedding::vector
        FROM unnest($3::text[], $4::int[], $5::bigint[], $6::text[], $7::int[], $8::text[])
          AS n (source_id, ordinal, version, model, dim, embedding)
        JOIN (SELECT * FROM knowledge_sources WHERE tenant_id = $1 AND namespace = $2 AND source_id = ANY ($3) FOR SHARE) s
          USING (source_id, version)
        ON CONFLICT (tenant_id, namespace, source_id, ordinal)
          DO UPDATE SET version = excluded.version, model = excluded.model, dim = excluded.dim, embedding = excluded.embedding
          WHERE (knowledge_vectors.version, knowledge_vectors.model) IS DISTINCT FROM (excluded.version, excluded.model)`,
        [tenantId, namespace, ...keysOf(rows), vectors.map(({ length }) => length), vectors.map(literal)],
      ),
    );
  }

  /** The chunks nearest to the query, the nearest first: exactly in a knowledge base of up to `exactChunksMax` chunks, nearly so in a larger one. */
  async nearest(scope: VectorScope, query: Float32Array, limit: number): Promise<NearChunk[]> {
    const usesIndex = scope.chunks > this.exactChunksMax && query.length <= INDEXED_DIMENSIONS_MAX;
    const found = await this.#nearest(scope, query, limit, usesIndex);
    // The index gives up after some 20,000 vectors, which may nearly all be other tenants' or filtered out.
    return usesIndex && found.length < limit ? this.#nearest(scope, query, limit, false) : found;
  }

  #nearest(scope: VectorScope, query: Float32Array, limit: number, usesIndex: boolean): Promise<NearChunk[]> {
    const { tenantId, namespace, model, only } = scope;
    const dimensions = query.length;
    // The planner takes the index for its very expression only.
    const distance = usesIndex
      ? `v.embedding::vector(${dimensions}) <=> $4::vector(${dimensions})`
      : 'v.embedding <=> $4::vector';
    return this.db.tenant(tenantId, async (tx: Tx) => {
      if (usesIndex)
        await tx.query(`SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = ${EF_SEARCH}`);
      const found = await tx.query<NearChunk>(
        `SELECT source_id, ordinal, version, 1 - (${distance}) AS cosine ${LIVE} AND v.dim = ${dimensions}
          AND ($5::text[] IS NULL OR source_id = ANY ($5))
        ORDER BY ${distance} LIMIT $6`,
        [tenantId, namespace, model, literal(query), only ? [...only] : null, limit],
      );
      return found.sort((one, other) => other.cosine - one.cosine);
    });
  }

  /** How near some chunks are; those that are gone are missing. */
  cosines(
    scope: VectorScope,
    query: Float32Array,
    chunks: readonly { sourceId: string; ordinal: number }[],
  ): Promise<NearChunk[]> {
    const { tenantId, namespace, model } = scope;
    return this.db.tenant(tenantId, (tx: Tx) =>
      tx.query<NearChunk>(
        `SELECT source_id, ordinal, version, 1 - (v.embedding <=> $4::vector) AS cosine ${LIVE} AND v.dim = ${query.length}
          AND (source_id, ordinal) IN (SELECT * FROM unnest($5::text[], $6::int[]))`,
        [
          tenantId,
          namespace,
          model,
          literal(query),
          chunks.map(({ sourceId }) => sourceId),
          chunks.map(({ ordinal }) => ordinal),
        ],
      ),
    );
  }
}
