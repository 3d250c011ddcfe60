import { setTimeout as delay } from 'node:timers/promises';
import type { Db } from '../../db/pool.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import type { Logger } from '../../runtime/logger.js';
import { unlessAborted } from '../../runtime/promises/unless-aborted.js';
import type { Lane } from '../embedding/lanes.js';
import type { IngestProgress } from './ingest-job.js';
import type { Ingestor } from './ingestor.js';
import type { JobRef } from './jobs.js';

/** The workflows of jobs. */
export interface IngestWorkflows {
  /** Starts the workflow of a job if it does not run. */
  ensureIngest(ref: JobRef): Promise<void>;
}

export interface JobRunnerDeps {
  db: Db;
  log: Pick<Logger, 'info' | 'warn'>;
  /** Undefined in a process that leaves documents to others: one without the knowledge role. */
  ingestor: Ingestor | undefined;
  workflows: IngestWorkflows;
}

/**
 * Slices that this process runs at once, and of these at most so many of one tenant: for workflows, and as many again for callers that wait,
 * so that a small text does not stand behind large jobs.
 */
const SLICES = { limit: 4, perKey: 2 };
/** Of one tenant; more are refused and come back by their workflows. */
const SLICES_WAITING = 200;
/**
 * How long a caller whose documents are small waits for them before the job goes to its workflow: less than the time after which others look
 * after the job (jobs.ts).
 */
const INLINE_MS = 25_000;
/** How long a caller that asked for it waits for a job. */
const WAIT_MS = 60_000;
const LOOK_MIN_MS = 50;
const LOOK_MAX_MS = 500;

function turnsOfTenants(): FairSemaphore {
  return new FairSemaphore({
    ...SLICES,
    waitingMax: SLICES_WAITING,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many documents wait to be taken in.'),
  });
}

/** Runs jobs in this process, and hands them to their workflows. */
export class JobRunner {
  readonly #turns = turnsOfTenants();
  readonly #inlineTurns = turnsOfTenants();

  constructor(private readonly deps: JobRunnerDeps) {}

  /** Runs the next slice of a job in the turn of its tenant. */
  runSlice(ref: JobRef, signal: AbortSignal): Promise<IngestProgress> {
    return this.#runIn(this.#turns, ref, signal, 'bulk');
  }

  async #runIn(turns: FairSemaphore, ref: JobRef, signal: AbortSignal, lane: Lane): Promise<IngestProgress> {
    const { ingestor } = this.deps;
    if (!ingestor) throw new PlatformError('SERVICE_UNAVAILABLE', 'This process does not take documents in.');
    const slice = async (): Promise<IngestProgress> => {
      signal.throwIfAborted();
      return ingestor.runSlice(ref, signal, lane);
    };
    return unlessAborted(turns.run(ref.tenant_id, slice), signal);
  }

  /** Runs a whole job here while its caller waits; what it cannot finish in time goes to the job's workflow. */
  async runInline(ref: JobRef): Promise<void> {
    if (!this.deps.ingestor) {
      await this.start(ref);
      return this.untilEnded(ref, INLINE_MS);
    }
    const signal = AbortSignal.timeout(INLINE_MS);
    try {
      while (!(await this.#runIn(this.#inlineTurns, ref, signal, 'inline')).ended);
    } catch (error) {
      this.deps.log.info({ job_id: ref.job_id, err: errorMessage(error) }, 'a job goes on in its workflow');
      await this.start(ref);
    }
  }

  /** Starts the workflow of a job. A failure is not the caller's: the job is looked after (job-starter.ts). */
  async start(ref: JobRef): Promise<void> {
    await this.deps.workflows.ensureIngest(ref).catch((error: unknown) => {
      this.deps.log.warn({ job_id: ref.job_id, err: errorMessage(error) }, 'the workflow of a job is started later');
    });
  }

  /** Waits until a job has ended, for a minute at most. */
  async untilEnded({ tenant_id, job_id }: JobRef, waitMs: number = WAIT_MS): Promise<void> {
    const endsAt = performance.now() + waitMs;
    const select = `SELECT 1 FROM knowledge_jobs WHERE tenant_id = $1 AND job_id = $2 AND status = 'processing'`;
    for (let pause = LOOK_MIN_MS; performance.now() < endsAt; pause = Math.min(LOOK_MAX_MS, pause * 2)) {
      const open = await this.deps.db.tenant(tenant_id, (tx) => tx.query(select, [tenant_id, job_id]));
      if (open.length === 0) return;
      await delay(pause);
    }
  }
}
