import { ApplicationFailure, TemporalFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';

function hidden(error: unknown): unknown {
  if (error instanceof ApplicationFailure) {
    const { type, nonRetryable, nextRetryDelay } = error;
    const message = type ?? 'failed';
    const retry = { ...(nonRetryable && { nonRetryable }), ...(nextRetryDelay && { nextRetryDelay }) };
    return ApplicationFailure.create({ message, type: message, ...retry });
  }
  if (error instanceof TemporalFailure || !(error instanceof Error)) return error; // a cancel
  const { name, code } = error as Error & { code?: unknown };
  return ApplicationFailure.create({ type: name, message: typeof code === 'string' ? code : name });
}

/** Failures of activities reach Temporal as codes: their texts are not payloads, so no codec encrypts them. The log has them. */
export const hiddenFailures: ActivityInterceptorsFactory = () => ({
  inbound: {
    execute: async (input, next) => {
      try {
        return await next(input);
      } catch (error) {
        throw hidden(error);
      }
    },
  },
});
