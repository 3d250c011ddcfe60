import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { WorkflowStarter } from '../core.js';
import type { TemporalLink } from './temporal-link.js';

/** Concurrent wake-ups; the sweeper repeats those beyond. */
const UNDER_WAY_MAX = 512;

/**
 * Starts or wakes workflows in the background. The sweeper repeats failed wake-ups.
 * @returns also `settled`, which resolves when no wake-up is under way
 */
export function createWorkflowStarter(
  temporal: TemporalLink,
  log: Logger,
): WorkflowStarter & { settled(): Promise<void> } {
  const underWay = new Set<Promise<void>>();

  const run = (work: () => Promise<void>, fields: Record<string, string>) => {
    if (underWay.size >= UNDER_WAY_MAX) {
      log.warn({ ...fields, under_way: underWay.size }, 'too many wake-ups at once; the sweeper repeats this one');
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
