import type { Db } from '../../db/pool.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import { allOrFirstFailure } from '../../runtime/promises/all-or-first-failure.js';
import { purgeDeletedBases } from '../base-deletion.js';
import { stopJob } from './documents.js';
import type { IngestWorkflows } from './job-runner.js';
import type { JobRef } from './jobs.js';

const EVERY_MS = 2_000;
/** Jobs of one turn. */
const BATCH = 100;
/** Until a job is looked at again, in seconds. */
const NEXT_LOOK_SECONDS = 60;
const PURGE_EVERY_MS = 60_000;

/** Claims jobs that are due, of each tenant the oldest first, so that one with many leaves room for others. */
const CLAIM = `
  WITH due AS MATERIALIZED (
    SELECT tenant_id, job_id, row_number() OVER (PARTITION BY tenant_id ORDER BY wake_at) AS turn
      FROM knowledge_jobs WHERE status = 'processing' AND wake_at < now()),
  claimed AS MATERIALIZED (
    SELECT j.tenant_id, j.job_id FROM knowledge_jobs j JOIN due USING (tenant_id, job_id)
     WHERE j.wake_at < now() ORDER BY due.turn LIMIT ${BATCH} FOR UPDATE OF j SKIP LOCKED)
  UPDATE knowledge_jobs j SET wake_at = now() + interval '${NEXT_LOOK_SECONDS} s' FROM claimed c
   WHERE j.tenant_id = c.tenant_id AND j.job_id = c.job_id RETURNING j.tenant_id, j.job_id`;

/** As many of the oldest as one statement may delete with their documents. */
const DELETE_OLD = `
  DELETE FROM knowledge_jobs WHERE (tenant_id, job_id) IN (
    SELECT tenant_id, job_id FROM (
      SELECT tenant_id, job_id, sum(documents) OVER (ORDER BY ended_at, job_id) - documents AS before FROM (
        SELECT tenant_id, job_id, ended_at, documents FROM knowledge_jobs WHERE ended_at < now() - $1 * interval '1 day'
         ORDER BY ended_at LIMIT 1000) AS listed) AS counted
     WHERE before < 20000) RETURNING 1`;

interface WatchedWorkflows extends IngestWorkflows {
  fateOfIngest(ref: JobRef): Promise<'running' | 'missing' | 'ended_by_operator' | 'ended'>;
}

/** Starts the workflow of a job, unless an operator has ended it. */
async function startAgain(db: Db, workflows: WatchedWorkflows, ref: JobRef): Promise<void> {
  if ((await workflows.fateOfIngest(ref)) === 'ended_by_operator') await stopJob(db, ref);
  else await workflows.ensureIngest(ref);
}

/** Deletes jobs that ended longer ago, with what is known of their documents. */
export async function deleteOldJobs(db: Pick<Db, 'system'>, keptDays: number): Promise<void> {
  while ((await db.system((tx) => tx.query(DELETE_OLD, [keptDays]))).length > 0);
}

/**
 * Looks after jobs whose process died or whose workflow could not be started. Several processes may run it at once.
 */
export function createJobStarter(db: Db, workflows: WatchedWorkflows, log: Logger): Loop {
  return new Loop({
    name: 'knowledge jobs',
    intervalMs: EVERY_MS,
    log,
    work: async () => {
      const due = await db.system((tx) => tx.query<JobRef>(CLAIM));
      await allOrFirstFailure(due.map((ref) => startAgain(db, workflows, ref)));
    },
  });
}

/**
 * Finishes the deletion of knowledge bases, and deletes old jobs. It needs the database alone, so that what is deleted goes whatever else is
 * away. Several processes may run it at once.
 * @param keptDays how long the status of a job can be read after its end, and its `idempotency_key` counts
 */
export function createKnowledgePurge(db: Db, keptDays: number, log: Logger): Loop {
  return new Loop({
    name: 'knowledge purges',
    intervalMs: PURGE_EVERY_MS,
    immediate: true,
    log,
    work: async () => {
      await purgeDeletedBases(db);
      await deleteOldJobs(db, keptDays);
    },
  });
}
