import type { Db } from '../../db/pool.js';
import { endJobIfDone, type JobRef } from './jobs.js';
import type { JobContext } from './prepare-document.js';

/** How long outages count as no attempt of the documents that they meet, from the beginning of the job. */
const PATIENCE_HOURS = 6;

/** A job whose documents are taken in. */
export interface IngestJob extends JobContext {
  /** It began less than six hours ago. */
  is_young: boolean;
}

/** How far a job is, for the Temporal UI. */
export interface IngestProgress {
  ended: boolean;
  namespace: string;
  total: number;
  done: number;
  failed: number;
}

/** @returns undefined for a job that has ended, and one whose base is deleted */
export function readIngestJob(db: Pick<Db, 'tenant'>, { tenant_id, job_id }: JobRef): Promise<IngestJob | undefined> {
  const select = `
    SELECT j.tenant_id, j.job_id, j.namespace, j.operation, b.config,
           j.created_at > now() - interval '${PATIENCE_HOURS} hours' AS is_young
      FROM knowledge_jobs j JOIN knowledge_bases b USING (tenant_id, namespace)
     WHERE tenant_id = $1 AND job_id = $2 AND j.status = 'processing' AND b.deleted_at IS NULL`;
  return db.tenant(tenant_id, async (tx) => {
    const [job] = await tx.query<IngestJob>(select, [tenant_id, job_id]);
    return job;
  });
}

/** Ends the job if all its documents have ended. */
export function endIfDone(db: Pick<Db, 'tenant'>, job: IngestJob): Promise<IngestProgress> {
  return db.tenant(job.tenant_id, async (tx) => {
    const ended = await endJobIfDone(tx, job);
    const [counts] = await tx.query<{ total: number; done: number; failed: number }>(
      `SELECT count(*) AS total, count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'failed') AS failed
         FROM knowledge_documents WHERE tenant_id = $1 AND job_id = $2`,
      [job.tenant_id, job.job_id],
    );
    return { ended, namespace: job.namespace, ...(counts ?? { total: 0, done: 0, failed: 0 }) };
  });
}
