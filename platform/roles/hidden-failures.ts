import { CompleteAsyncError } from '@temporalio/activity';
import { ApplicationFailure, TemporalFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

function hidden(error: unknown): unknown {
  if (error instanceof ApplicationFailure) {
    const { type, nonRetryable, nextRetryDelay } = error;
    const message = type ?? 'failed';
    const retry = { ...(nonRetryable && { nonRetryable }), ...(nextRetryDelay && { nextRetryDelay }) };
    return ApplicationFailure.create({ message, type: message, ...retry });
  }
  // The SDK tells these by their class or name: a cancel, an abort, and an activity that is completed later.
  if (error instanceof TemporalFailure || error instanceof CompleteAsyncError || !(error instanceof Error))
    return error;
  if (error.name === 'AbortError') return error;
  const { name, code } = error as Error & { code?: unknown };
  return ApplicationFailure.create({ type: name, message: typeof code === 'string' ? code : name });
}

/**
 * Failures of activities reach Temporal as codes: their texts are not payloads, so no codec encrypts them. The SDK logs what it gets from here, so the
 * text is logged here.
 */
export const hideFailures =
  (log: Pick<Logger, 'warn'>): ActivityInterceptorsFactory =>
  ({ info }) => ({
    inbound: {
      execute: async (input, next) => {
        try {
          return await next(input);
        } catch (error) {
          const shown = hidden(error);
          const { workflowExecution, activityType, attempt } = info;
          const about = { workflow_id: workflowExecution?.workflowId, activity: activityType, attempt };
          if (shown !== error) log.warn({ ...about, err: errorMessage(error) }, 'activity failed');
          throw shown;
        }
      },
    },
  });
