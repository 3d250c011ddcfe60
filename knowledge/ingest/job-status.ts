import type { IngestedSource, JobResponse, JobStatus } from '../../contracts/api/knowledge/knowledge.js';
import { queryJson } from '../../db/json-rows.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { type KnowledgeReader, VISIBLE, visibleTo } from '../base-access.js';

/** Sources of a job that its status lists: where there are more, failed ones rather than others. */
const SHOWN_SOURCES = 100;

interface JobRow {
  namespace: string;
  operation: string;
  status: JobStatus;
  phase: 'queued' | 'working' | 'done';
  created_at: string;
  updated_at: string;
}

interface DocumentRow {
  source_id: string;
  state: 'pending' | 'done' | 'failed';
  result: 'created' | 'updated' | 'unchanged' | 'failed' | null;
  chunk_count: number;
  content_hash: string | null;
  tags: string[];
  error: { code: string; message: string } | null;
  /** Of the source; null while there is none. */
  created_at: string | null;
}

interface Counts {
  total: number;
  done: number;
  failed: number;
  chunks_done: number;
  share: number;
  created: number;
  updated: number;
  unchanged: number;
  chunks_created: number;
}

/** Reading takes this share of a document's progress, embedding the rest. */
const READ_SHARE = 0.1;

const COUNTS = `
  SELECT count(*) AS total, count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'failed') AS failed,
         coalesce(sum(CASE state WHEN 'done' THEN chunk_count ELSE chunks_done END), 0) AS chunks_done,
         coalesce(sum(CASE WHEN state <> 'pending' THEN 1.0 WHEN chunk_count > 0
                      THEN ${READ_SHARE} + ${0.99 - READ_SHARE} * chunks_done / chunk_count ELSE 0 END), 0)::float8 AS share,
         count(*) FILTER (WHERE result = 'created') AS created, count(*) FILTER (WHERE result = 'updated') AS updated,
         count(*) FILTER (WHERE result = 'unchanged') AS unchanged,
         coalesce(sum(chunk_count) FILTER (WHERE result IN ('created', 'updated')), 0) AS chunks_created
    FROM knowledge_documents WHERE tenant_id = $1 AND job_id = $2`;

const DOCUMENTS = `
  SELECT source_id, state, result, shown.chunk_count, shown.content_hash, shown.tags, error, s.created_at FROM (
    SELECT tenant_id, namespace, ordinal, source_id, state, result, chunk_count, content_hash, input -> 'tags' AS tags, error
      FROM knowledge_documents
     WHERE tenant_id = $1 AND job_id = $2 ORDER BY state <> 'failed', ordinal LIMIT ${SHOWN_SOURCES}) AS shown
    LEFT JOIN knowledge_sources s USING (tenant_id, namespace, source_id) ORDER BY ordinal`;

/** @param jobCreatedAt shown of a source that is not there */
function shownDocument(row: DocumentRow, jobCreatedAt: string): IngestedSource {
  const status = ({ pending: 'processing', done: 'completed', failed: 'failed' } as const)[row.state];
  const { source_id, chunk_count, tags, content_hash, result, error } = row;
  const created_at = row.created_at ?? jobCreatedAt;
  const shown = { source_id, status, chunk_count, tags, created_at, content_hash };
  return { ...shown, ...(result && { result }), ...(error && { error }) };
}

/**
 * How far a job is.
 * @throws PlatformError NOT_FOUND, also for a job of a base that the reader may not see
 */
export async function readJob(tx: Tx, reader: KnowledgeReader, jobId: string): Promise<JobResponse> {
  const select = `
    SELECT namespace, operation, status, phase, created_at, updated_at FROM knowledge_jobs
     WHERE tenant_id = $1 AND job_id = $4 AND namespace IN (SELECT namespace FROM knowledge_bases WHERE ${VISIBLE})`;
  const [job] = await queryJson<JobRow>(tx, select, [...visibleTo(reader), jobId]);
  if (!job) throw new PlatformError('NOT_FOUND', `There is no job ${jobId}.`);
  const [counts] = await queryJson<Counts>(tx, COUNTS, [reader.tenantId, jobId]);
  const documents = await queryJson<DocumentRow & { ordinal: number }>(tx, DOCUMENTS, [reader.tenantId, jobId]);
  if (!counts) throw new Error('an aggregate gives one row');
  return shownJob(jobId, job, counts, documents);
}

function shownJob(job_id: string, job: JobRow, counts: Counts, documents: DocumentRow[]): JobResponse {
  const { namespace, operation, status, phase, created_at, updated_at } = job;
  const { total, done, failed, chunks_done, share, chunks_created, created, updated, unchanged } = counts;
  const [only] = documents.length === 1 ? documents : [];
  const percent = status === 'processing' ? Math.min(99, Math.floor((100 * share) / Math.max(1, total))) : 100;
  const error = status === 'failed' ? documents.find((one) => one.error)?.error : undefined;
  return {
    ok: true,
    job_id,
    status,
    context: { namespace, operation, ...(only && { source_id: only.source_id }) },
    progress: { phase, sources_total: total, sources_done: done, sources_failed: failed, chunks_done, percent },
    sources: documents.map((one) => shownDocument(one, created_at)),
    ...(status !== 'processing' && { result: { created, updated, unchanged, failed, chunks_created } }),
    ...(error && { error }),
    created_at,
    updated_at,
  };
}
