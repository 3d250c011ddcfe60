import { CancellationScope, continueAsNew, isCancellation, workflowInfo } from '@temporalio/workflow';
import type { IngestProgress } from '../activities/ingest.js';
import type { IngestInput } from '../contracts/workflows.js';
import { documents, ingestRecord } from './stubs.js';
import { show } from './visibility.js';

function detailsOf({ namespace, total, done, failed }: IngestProgress): string {
  const problems = failed > 0 ? `, ${failed} failed` : '';
  return `Takes documents into \`${namespace}\`: ${done} of ${total} done${problems}.`;
}

async function ingestAll(input: IngestInput): Promise<void> {
  show('processing', null, 'Waits for a process with the knowledge role.');
  for (;;) {
    const progress = await documents.ingestSlice(input);
    if (progress.ended) {
      show('completed', null, progress.total > 0 ? detailsOf(progress) : 'The job has ended.');
      return;
    }
    show('processing', null, detailsOf(progress));
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof ingest>(input);
  }
}

/**
 * Takes the documents of a job in, a slice at a time, until the job has ended. Documents and results are in Postgres, so the workflow can be
 * recreated. An operator's cancel in the Temporal UI gives up what is left of the job.
 */
export async function ingest(input: IngestInput): Promise<void> {
  try {
    await ingestAll(input);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => ingestRecord.stopIngest(input));
    throw error;
  }
}
