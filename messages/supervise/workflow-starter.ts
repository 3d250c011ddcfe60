import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { WorkflowStarter } from '../core.js';
import type { TemporalLink } from './temporal-link.js';

/** Wake-ups under way at once; beyond it the sweeper brings them a little later. */
const UNDER_WAY_MAX = 512;

/** A workflow starter with the means to wait for what it has begun. */
export interface RunningWorkflowStarter extends WorkflowStarter {
  /** Resolves when no wake-up is under way. */
  settled(): Promise<void>;
}

/**
 * Starts or wakes workflows in the background. A failure is left to the sweeper: the row's `wake_requested_at` stays until the
 * workflow itself clears it.
 */
export function createWorkflowStarter(options: { temporal: TemporalLink; log: Logger }): RunningWorkflowStarter {
  const { temporal, log } = options;
  const underWay = new Set<Promise<void>>();

  const run = (work: () => Promise<void>, fields: Record<string, string>) => {
    if (underWay.size >= UNDER_WAY_MAX) {
      log.warn({ ...fields, under_way: underWay.size }, 'too many wake-ups at once; the sweeper brings this one');
      return;
    }
    const task = work()
      .catch((error: unknown) =>
        log.warn({ ...fields, err: errorMessage(error) }, 'wake-up failed; the sweeper repeats it'),
      )
      .finally(() => underWay.delete(task));
    underWay.add(task);
  };

  return {
    message: ({ tenant_id, message_id, session_id }, options) => {
      const input = { tenant_id, message_id, session_id };
      run(() => (options?.fresh ? temporal.startMessage(input) : temporal.wakeMessage(input)), { message_id });
    },
    session: ({ tenant_id, session_id }) => run(() => temporal.wakeSession({ tenant_id, session_id }), { session_id }),
    settled: async () => {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}
