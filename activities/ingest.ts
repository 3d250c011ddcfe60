import { Context } from '@temporalio/activity';
import type { IngestInput } from '../contracts/workflows.js';
import type { Db } from '../db/pool.js';
import { stopJob } from '../knowledge/ingest/documents.js';
import type { IngestProgress } from '../knowledge/ingest/ingest-job.js';
import type { JobRunner } from '../knowledge/ingest/job-runner.js';

export type { IngestProgress };

/** Far below the heartbeat timeout of a slice. */
const HEARTBEAT_MS = 3_000;

export type IngestActivities = ReturnType<typeof createIngestActivities>;

/** The work on documents, in processes with the knowledge role. */
export function createIngestActivities(runner: Pick<JobRunner, 'runSlice'>) {
  return {
    /** Takes the next documents of a job. */
    ingestSlice: async (input: IngestInput): Promise<IngestProgress> => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const context = Context.current();
      const beat = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
      try {
        return await runner.runSlice(input, context.cancellationSignal);
      } catch (error) {
        // A canceled slice is reported as canceled, not as a failure that is to be retried.
        if (context.cancellationSignal.aborted) await context.cancelled;
        throw error;
      } finally {
        clearInterval(beat);
      }
    },
  };
}

export type IngestRecordActivities = ReturnType<typeof createIngestRecordActivities>;

/** Local activities of the ingest workflow. */
export function createIngestRecordActivities(db: Db) {
  return {
    /** Gives up what is left of a job. */
    stopIngest: (input: IngestInput): Promise<void> => stopJob(db, input),
  };
}
