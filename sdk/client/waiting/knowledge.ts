import { KnowledgeOperations } from '../generated/operations.js';
import type { KnowledgeGetStatusResponse } from '../generated/schema-types.js';
import { untilSettled, type WaitOptions } from './until-settled.js';

/** `/knowledge_base/*`, and a wait for a job. */
export class WaitingKnowledge extends KnowledgeOperations {
  /**
   * Polls a job of `ingest` or `refresh` until it is `completed` or `failed`. Temporary failures of the platform are passed over.
   * @throws ApiError with code `REQUEST_TIMEOUT` when that has not happened within `timeoutMs`
   */
  waitFor(jobId: string, options: Omit<WaitOptions, 'until'> = {}): Promise<KnowledgeGetStatusResponse> {
    const read = (call: WaitOptions) => this.getStatus({ jobId }, call);
    return untilSettled(`job ${jobId}`, read, ({ status }) => status !== 'processing', options);
  }
}
