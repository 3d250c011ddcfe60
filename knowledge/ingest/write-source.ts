import type { Tx } from '../../db/pool.js';
import type { Chunk } from '../chunk/chunks.js';
import type { StoredInput } from './document-input.js';
import { type DocumentFailure, failDocument } from './documents.js';
import type { JobRef } from './jobs.js';
import { readBytes } from './large-values.js';
import { chunksVersion, insertChunks } from './write-chunks.js';

/** What is stored of a source beside its input and chunks. */
export interface SourceFields {
  title: string;
  filename: string | null;
  url: string | null;
  etag: string | null;
  content_type: string;
  source_type: string | null;
  /** What the caller named, and not what was found: it counts again when the URL is read again. */
  declared: Pick<StoredInput, 'title' | 'filename' | 'content_type'>;
  content_hash: string;
  chunking: string;
  byte_count: number;
  model: string | null;
  dim: number | null;
}

/** What changes with everything that is written of a source: `place` with each call, `version` with its chunks (`chunksVersion`). */
export interface SourceState {
  place: number;
  version: number;
}

/** A source as it is stored: what a new version is compared with. */
export interface StoredSource extends SourceFields, SourceState {
  tags: string[];
  metadata: Record<string, unknown>;
  chunk_count: number;
  /** Of all its chunks. */
  token_count: number;
}

/** A version of a source that is ready to replace the one of before. */
export interface NewVersion {
  fields: SourceFields;
  input: Pick<StoredInput, 'tags' | 'metadata'>;
  /** The stored source that it was prepared from; undefined where there was none. */
  before: SourceState | undefined;
  extracted: Uint8Array;
  chunks: readonly Chunk[];
  /** One for each chunk; none without an embedder. */
  vectors: readonly Float32Array[] | undefined;
}

/** The document of a job that is being written, and its source. */
interface Target extends JobRef {
  /** With `refresh` the source keeps its place: only `create` and `ingest` move it to the place of their call. */
  operation: string;
  namespace: string;
  source_id: string;
  ordinal: number;
  place: number;
}

/**
 * What became of a write: `gone` where job, document or base have ended meanwhile. `changed` where the source is another one than that which
 * the document was compared with: nothing is written, and the document is to be prepared again.
 */
export type WriteResult = 'created' | 'updated' | 'unchanged' | 'superseded' | 'deleted' | 'changed' | 'gone';

const SOURCE = `place, version, title, filename, url, etag, content_type, source_type, declared, content_hash, chunking, byte_count, model, dim,
  tags, metadata, chunk_count, token_count`;

/** The stored source of a document. @param lock for a transaction that replaces it */
export async function readSource(
  tx: Tx,
  of: Pick<Target, 'tenant_id' | 'namespace' | 'source_id'>,
  lock = false,
): Promise<StoredSource | undefined> {
  const [row] = await tx.query<StoredSource>(
    `SELECT ${SOURCE} FROM knowledge_sources WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3 ${lock ? 'FOR UPDATE' : ''}`,
    [of.tenant_id, of.namespace, of.source_id],
  );
  return row;
}

/** Locks a document that is still to be written: whoever cancels it waits, and then finds it written. */
async function lockDocument(tx: Tx, { tenant_id, job_id, ordinal }: Target): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM knowledge_documents d JOIN knowledge_jobs j USING (tenant_id, job_id)
      WHERE tenant_id = $1 AND job_id = $2 AND ordinal = $3 AND d.state = 'pending' AND j.status = 'processing' FOR UPDATE OF d`,
    [tenant_id, job_id, ordinal],
  );
  return rows.length > 0;
}

/**
 * Ends the document. Where the chunks are new, whoever keeps the base in memory finds it changed.
 * @throws BaseGone where the base was deleted
 */
async function finish(
  tx: Tx,
  target: Target,
  done: { result: WriteResult; chunks: number; hash: string; hasNewChunks: boolean },
): Promise<WriteResult> {
  const { tenant_id, job_id, ordinal, namespace, source_id } = target;
  const { result, chunks, hash, hasNewChunks } = done;
  await tx.query(
    `UPDATE knowledge_documents SET state = 'done', result = $4, content = NULL, chunk_count = $5, content_hash = $6
      WHERE tenant_id = $1 AND job_id = $2 AND ordinal = $3`,
    [tenant_id, job_id, ordinal, result, chunks, hash],
  );
  const [base] = await tx.query<{ revision: number }>(
    `UPDATE knowledge_bases SET revision = CASE WHEN $3 THEN nextval('knowledge_order') ELSE revision END, last_ingested_at = now()
      WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NULL RETURNING revision`,
    [tenant_id, namespace, hasNewChunks],
  );
  if (!base) throw new BaseGone();
  // The base's row is locked for as short a time as can be, so its revision is known only now.
  if (hasNewChunks) {
    await tx.query(
      'UPDATE knowledge_sources SET revision = $4 WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3',
      [tenant_id, namespace, source_id, base.revision],
    );
  }
  return result;
}

const FAILURES = {
  superseded: { code: 'SUPERSEDED', message: 'A later call has written this source meanwhile.' },
  deleted: { code: 'SOURCE_DELETED', message: 'The source was deleted meanwhile.' },
} satisfies Partial<Record<WriteResult, DocumentFailure>>;

async function fail(tx: Tx, target: Target, result: keyof typeof FAILURES): Promise<WriteResult> {
  await failDocument(tx, target, target.ordinal, FAILURES[result]);
  return result;
}

/**
 * Locks a document and its source.
 * @returns the source as it is now, and the place that it gets; or why nothing may be written
 */
async function begin(
  tx: Tx,
  target: Target,
  compared: SourceState | undefined,
  keepsChunks: boolean,
): Promise<WriteResult | { before: StoredSource | undefined; place: number }> {
  if (!(await lockDocument(tx, target))) return 'gone';
  const before = await readSource(tx, target, true);
  const sameChunks = before?.version === compared?.version;
  if (target.operation === 'refresh') {
    if (!before) return fail(tx, target, 'deleted');
    return sameChunks && before.place === compared?.place ? { before, place: before.place } : 'changed';
  }
  if (before && before.place > target.place) return fail(tx, target, 'superseded');
  return keepsChunks && !sameChunks ? 'changed' : { before, place: target.place };
}

/** A transaction that found its base deleted is rolled back by this. */
export class BaseGone extends Error {}

/**
 * Replaces a source by a new version in one transaction with its chunks, its document and the revision of its base: queries see the old
 * version or the new one.
 * @throws BaseGone, to undo the transaction
 */
export async function writeSource(tx: Tx, target: Target, version: NewVersion): Promise<WriteResult> {
  const begun = await begin(tx, target, version.before, false);
  if (typeof begun === 'string') return begun;
  const { before, place } = begun;
  const { fields, input, extracted, chunks } = version;
  const tokens = chunks.reduce((sum, chunk) => sum + chunk.tokens, 0);
  await tx.query(
    `INSERT INTO knowledge_sources (tenant_id, namespace, source_id, ${SOURCE}, extracted)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
     ON CONFLICT (tenant_id, namespace, source_id) DO UPDATE SET (${SOURCE}, extracted, updated_at) =
       ROW (${SOURCE.split(',').map((column) => `excluded.${column.trim()}`)}, excluded.extracted, now())`,
    [
      target.tenant_id,
      target.namespace,
      target.source_id,
      place,
      chunksVersion(target),
      fields.title,
      fields.filename,
      fields.url,
      fields.etag,
      fields.content_type,
      fields.source_type,
      fields.declared,
      fields.content_hash,
      fields.chunking,
      fields.byte_count,
      fields.model,
      fields.dim,
      input.tags,
      input.metadata,
      chunks.length,
      tokens,
      extracted,
    ],
  );
  if (before) {
    const key = [target.tenant_id, target.namespace, target.source_id];
    await tx.query('DELETE FROM knowledge_chunks WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3', key);
  }
  await insertChunks(tx, target, { ...version, ...fields });
  const done = { chunks: chunks.length, hash: fields.content_hash, hasNewChunks: true };
  return finish(tx, target, { ...done, result: before ? 'updated' : 'created' });
}

/** Keeps the chunks of a source, and writes what else is said of it. @throws BaseGone, to undo the transaction */
export async function keepSource(
  tx: Tx,
  target: Target,
  fields: Pick<SourceFields, 'filename' | 'url' | 'etag' | 'source_type' | 'declared'>,
  { input, before: compared }: Pick<NewVersion, 'input' | 'before'>,
): Promise<WriteResult> {
  const begun = await begin(tx, target, compared, true);
  if (typeof begun === 'string') return begun;
  const { before, place } = begun;
  if (!before) return 'changed';
  const { filename, url, etag, source_type, declared } = fields;
  const values = [filename, url, etag, source_type, input.tags, input.metadata, place, declared];
  const [changed] = await tx.query<{ differs: boolean }>(
    `UPDATE knowledge_sources s SET filename = $4, url = $5, etag = $6, source_type = $7, tags = $8, metadata = $9, place = $10, declared = $11,
            updated_at = CASE WHEN b.same THEN s.updated_at ELSE now() END
       FROM (SELECT (filename, url, source_type, tags, metadata) IS NOT DISTINCT FROM ($4, $5, $7, $8::text[], $9::jsonb) AS same
               FROM knowledge_sources WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3) AS b
      WHERE s.tenant_id = $1 AND s.namespace = $2 AND s.source_id = $3 RETURNING NOT b.same AS differs`,
    [target.tenant_id, target.namespace, target.source_id, ...values],
  );
  // Searches keep what they have in memory: its version is the same, and tags and metadata are read with each of them.
  const done = { chunks: before.chunk_count, hash: before.content_hash, hasNewChunks: false };
  return finish(tx, target, { ...done, result: changed?.differs ? 'updated' : 'unchanged' });
}

/** The text of a source with its outline, as it was extracted. */
export function readExtracted(tx: Tx, of: { tenant_id: string; namespace: string; source_id: string }) {
  const from = 'knowledge_sources WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3';
  return readBytes(tx, 'extracted', from, [of.tenant_id, of.namespace, of.source_id]);
}
