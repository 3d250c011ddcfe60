import type { IngestedSource, JobResponse, JobStatus, KnowledgeJob } from '../../contracts/api/knowledge/knowledge.js';
import { queryJson } from '../../db/json-rows.js';
import { type KeyList, type Page, type PageRequest, readPage } from '../../db/pages/page.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { type KnowledgeReader, requireBase, VISIBLE, visibleTo } from '../base-access.js';

/** Sources of a job that its status lists: where there are more, failed ones rather than others. */
const SHOWN_SOURCES = 100;

/** A job, with the counts of its documents. */
interface JobRow {
  job_id: string;
  namespace: string;
  operation: string;
  status: JobStatus;
  phase: 'queued' | 'working' | 'done';
  created_at: string;
  updated_at: string;
  total: number;
  done: number;
  failed: number;
  chunks_done: number;
  share: number;
  created: number;
  updated: number;
  unchanged: number;
  chunks_created: number;
  /** Of the first document. */
  source_id: string | null;
  /** Of the first document that has one. */
  error: { code: string; message: string } | null;
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

/** Reading takes this share of a document's progress, embedding the rest. */
const READ_SHARE = 0.1;

/** The jobs of these ids that a reader may see, the newest first. $1 to $3: as `VISIBLE`. */
const JOBS = `
  SELECT j.job_id, j.namespace, j.operation, j.status, j.phase, j.created_at, j.updated_at,
         count(d.ordinal) AS total, count(*) FILTER (WHERE d.state = 'done') AS done, count(*) FILTER (WHERE d.state = 'failed') AS failed,
         coalesce(sum(CASE d.state WHEN 'done' THEN d.chunk_count ELSE d.chunks_done END), 0) AS chunks_done,
         coalesce(sum(CASE WHEN d.state <> 'pending' THEN 1.0 WHEN d.chunk_count > 0
                      THEN ${READ_SHARE} + ${0.99 - READ_SHARE} * d.chunks_done / d.chunk_count ELSE 0 END), 0)::float8 AS share,
         count(*) FILTER (WHERE d.result = 'created') AS created, count(*) FILTER (WHERE d.result = 'updated') AS updated,
         count(*) FILTER (WHERE d.result = 'unchanged') AS unchanged,
         coalesce(sum(d.chunk_count) FILTER (WHERE d.result IN ('created', 'updated')), 0) AS chunks_created,
         min(d.source_id) AS source_id, (array_agg(d.error ORDER BY d.ordinal) FILTER (WHERE d.error IS NOT NULL))[1] AS error
    FROM knowledge_jobs j LEFT JOIN knowledge_documents d ON d.tenant_id = j.tenant_id AND d.job_id = j.job_id
   WHERE j.tenant_id = $1 AND j.job_id = ANY ($4) AND j.namespace IN (SELECT namespace FROM knowledge_bases WHERE ${VISIBLE})
   GROUP BY j.tenant_id, j.job_id ORDER BY j.job_id DESC`;

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

function shownJob(job: JobRow): KnowledgeJob {
  const { job_id, namespace, operation, status, phase, source_id, created_at, updated_at } = job;
  const { total, done, failed, chunks_done, share, chunks_created, created, updated, unchanged } = job;
  const percent = status === 'processing' ? Math.min(99, Math.floor((100 * share) / Math.max(1, total))) : 100;
  return {
    job_id,
    status,
    context: { namespace, operation, ...(total === 1 && source_id !== null && { source_id }) },
    progress: { phase, sources_total: total, sources_done: done, sources_failed: failed, chunks_done, percent },
    ...(status !== 'processing' && { result: { created, updated, unchanged, failed, chunks_created } }),
    ...(status === 'failed' && job.error && { error: job.error }),
    created_at,
    updated_at,
  };
}

/**
 * How far a job is.
 * @throws PlatformError NOT_FOUND, also for a job of a base that the reader may not see
 */
export async function readJob(tx: Tx, reader: KnowledgeReader, jobId: string): Promise<JobResponse> {
  const [job] = await queryJson<JobRow>(tx, JOBS, [...visibleTo(reader), [jobId]]);
  if (!job) throw new PlatformError('NOT_FOUND', `There is no job ${jobId}.`);
  const documents = await queryJson<DocumentRow>(tx, DOCUMENTS, [reader.tenantId, jobId]);
  return { ok: true, ...shownJob(job), sources: documents.map((one) => shownDocument(one, job.created_at)) };
}

/** The jobs of a base, the newest first. @throws PlatformError NOT_FOUND */
export async function listJobs(
  db: Db,
  reader: KnowledgeReader,
  request: PageRequest & { namespace: string },
): Promise<Page<KnowledgeJob>> {
  const { namespace } = request;
  await db.tenant(reader.tenantId, (tx) => requireBase(tx, reader, namespace));
  const list: KeyList = {
    key: 'job_id',
    from: 'knowledge_jobs WHERE tenant_id = $1 AND namespace = $2',
    orderBy: 'job_id DESC',
    values: [reader.tenantId, namespace],
  };
  return readPage(db, list, request, async (tx, ids) =>
    (await queryJson<JobRow>(tx, JOBS, [...visibleTo(reader), ids])).map(shownJob),
  );
}
