import type { JobStatus } from '../../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import type { NewDocument } from './document-input.js';

/** A job by its ids. */
export interface JobRef {
  tenant_id: string;
  job_id: string;
}

type Operation = 'create' | 'ingest' | 'refresh';

/** A job to be written. */
export interface NewJob {
  tenantId: string;
  namespace: string;
  operation: Operation;
  createdBy: string;
  idempotencyKey?: string | undefined;
  fingerprint: string;
}

/** How long a process that takes documents in while the caller waits has before others look after the job, in seconds. */
const FIRST_LOOK_SECONDS = 30;

/** The job of the same key. @throws PlatformError IDEMPOTENCY_MISMATCH when it was for something else */
export async function repeatedJob(tx: Tx, job: NewJob): Promise<JobRef | undefined> {
  if (job.idempotencyKey === undefined) return undefined;
  const [found] = await tx.query<{ job_id: string; fingerprint: string }>(
    'SELECT job_id, fingerprint FROM knowledge_jobs WHERE tenant_id = $1 AND namespace = $2 AND idempotency_key = $3',
    [job.tenantId, job.namespace, job.idempotencyKey],
  );
  if (!found) return undefined;
  if (found.fingerprint === job.fingerprint) return { tenant_id: job.tenantId, job_id: found.job_id };
  throw new PlatformError('IDEMPOTENCY_MISMATCH', 'The idempotency_key was used for other documents.');
}

/** @returns undefined where a call under the same key was quicker by a moment */
async function insertJob(tx: Tx, job: NewJob, documents: number): Promise<JobRef | undefined> {
  const { tenantId, namespace, operation, createdBy, idempotencyKey = null, fingerprint } = job;
  const [processing] = await tx.query<{ count: number }>(
    `SELECT count(*) AS count FROM knowledge_jobs WHERE tenant_id = $1 AND status = 'processing'`,
    [tenantId],
  );
  if ((processing?.count ?? 0) >= LIMITS.knowledgeJobsPerTenant) {
    const message = `${LIMITS.knowledgeJobsPerTenant} jobs are at work. Wait for one to end.`;
    throw new PlatformError('RATE_LIMITED', message, { headers: { 'Retry-After': '5' } });
  }
  const job_id = newId('job');
  const inserted = await tx.query(
    `INSERT INTO knowledge_jobs (tenant_id, job_id, namespace, operation, status, phase, created_by, idempotency_key, fingerprint, documents,
                                 wake_at)
     VALUES ($1, $2, $3, $4, 'processing', 'queued', $5, $6, $7, $8, now() + interval '${FIRST_LOOK_SECONDS} s')
     ON CONFLICT (tenant_id, namespace, idempotency_key) DO NOTHING RETURNING 1`,
    [tenantId, job_id, namespace, operation, createdBy, idempotencyKey, fingerprint, documents],
  );
  return inserted.length > 0 ? { tenant_id: tenantId, job_id } : undefined;
}

/** Writes a job with its documents. @returns `repeated` for a key whose job is there already, which is left as it is */
export async function writeJob(
  tx: Tx,
  job: NewJob,
  documents: readonly NewDocument[],
): Promise<JobRef & { repeated: boolean }> {
  const repeated = await repeatedJob(tx, job);
  if (repeated) return { ...repeated, repeated: true };
  const ref = await insertJob(tx, job, documents.length);
  if (!ref) return writeJob(tx, job, documents);
  const insert = `
    INSERT INTO knowledge_documents (tenant_id, job_id, ordinal, namespace, source_id, state, input, content, content_bytes, content_hash)
    VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8, $9)`;
  for (const [ordinal, { sourceId, input, content, contentHash }] of documents.entries()) {
    const bytes = content?.length ?? 0;
    await tx.query(insert, [
      job.tenantId,
      ref.job_id,
      ordinal,
      job.namespace,
      sourceId,
      input,
      content,
      bytes,
      contentHash,
    ]);
  }
  return { ...ref, repeated: false };
}

/**
 * Writes a job that fetches sources of a base anew. What is said of a source is read when its turn comes.
 * @param sourceIds all sources of the base where left out
 * @param force renews a source too whose content is the same
 * @throws PlatformError NOT_FOUND for a source that is not there
 */
export async function writeRefreshJob(
  tx: Tx,
  job: NewJob,
  sourceIds: string[] | undefined,
  force: boolean,
): Promise<JobRef> {
  const { tenantId, namespace } = job;
  const wanted = 'tenant_id = $1 AND namespace = $2 AND ($3::text[] IS NULL OR source_id = ANY ($3))';
  const found = await tx.query<{ source_id: string }>(`SELECT source_id FROM knowledge_sources WHERE ${wanted}`, [
    tenantId,
    namespace,
    sourceIds ?? null,
  ]);
  const missing = sourceIds?.find((id) => !found.some(({ source_id }) => source_id === id));
  if (missing !== undefined) throw new PlatformError('NOT_FOUND', `There is no source ${missing} in ${namespace}.`);
  const ref = await insertJob(tx, job, found.length);
  if (!ref) throw new Error('a job without a key conflicts with none');
  await tx.query(
    `INSERT INTO knowledge_documents (tenant_id, job_id, ordinal, namespace, source_id, state, input, content_bytes)
     SELECT $1, $4, row_number() OVER (ORDER BY source_id) - 1, $2, source_id, 'pending',
            jsonb_strip_nulls(jsonb_build_object('url', url, 'force', $5::boolean, 'tags', tags, 'metadata', '{}'::jsonb)), byte_count
       FROM knowledge_sources WHERE ${wanted}`,
    [tenantId, namespace, sourceIds ?? null, ref.job_id, force],
  );
  // Nothing to renew is a job that is over.
  if (found.length === 0) await endJobIfDone(tx, ref);
  return ref;
}

/** Ends a job whose documents are all done. @returns whether it has ended */
export async function endJobIfDone(tx: Tx, { tenant_id, job_id }: JobRef): Promise<boolean> {
  // It failed where nothing at all came of it.
  const [ended] = await tx.query<{ status: JobStatus }>(
    `UPDATE knowledge_jobs j SET phase = 'done', ended_at = now(), updated_at = now(), wake_at = NULL,
            status = CASE WHEN j.documents > 0 AND NOT EXISTS (
              SELECT 1 FROM knowledge_documents d WHERE d.tenant_id = $1 AND d.job_id = $2 AND d.state = 'done') THEN 'failed' ELSE 'completed' END
      WHERE tenant_id = $1 AND job_id = $2 AND status = 'processing' AND NOT EXISTS (
              SELECT 1 FROM knowledge_documents d WHERE d.tenant_id = $1 AND d.job_id = $2 AND d.state = 'pending')
      RETURNING status`,
    [tenant_id, job_id],
  );
  if (ended) return true;
  const [row] = await tx.query<{ status: JobStatus }>(
    'SELECT status FROM knowledge_jobs WHERE tenant_id = $1 AND job_id = $2',
    [tenant_id, job_id],
  );
  return row?.status !== 'processing';
}
