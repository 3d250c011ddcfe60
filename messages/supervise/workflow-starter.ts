import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import type { Logger } from '../../runtime/logger.js';
import type { WorkflowStarter } from '../core.js';
import type { TemporalLink } from './temporal-link.js';

/**
 * Temporal comes after the message: what has just been written goes to its agent first. A wake-up at once has an answer reach its agent in 20 ms in place of
 * 16, on two cores.
 */
const AFTER_MS = 50;
/** Concurrent wake-ups, in all and of one tenant; few, for the reason at `STARTS_MAX` in messages/dispatch/dispatcher.ts. */
const AT_ONCE = 64;
const OF_TENANT_AT_ONCE = 4;
/** Wake-ups of one tenant that wait; the sweeper repeats those beyond. */
const WAITING_MAX = 512;

/**
 * Starts or wakes workflows in the background, in turns of the tenants. The sweeper repeats failed wake-ups.
 * @returns also `settled`, which resolves when no wake-up is under way
 */
export function createWorkflowStarter(
  temporal: Pick<TemporalLink, 'wakeMessage' | 'wakeSession'>,
  log: Logger,
): WorkflowStarter & { settled(): Promise<void> } {
  const underWay = new Set<Promise<void>>();
  const turns = new FairSemaphore({
    limit: AT_ONCE,
    perKey: OF_TENANT_AT_ONCE,
    waitingMax: WAITING_MAX,
    refusal: () => new Error(`the tenant has ${WAITING_MAX} wake-ups that wait`),
  });

  const run = (tenantId: string, work: () => Promise<void>, fields: Record<string, string>) => {
    const task = delay(AFTER_MS)
      .then(() => turns.run(tenantId, work))
      .catch((error: unknown) =>
        log.warn({ ...fields, err: errorMessage(error) }, 'wake-up failed; the sweeper repeats it'),
      )
      .finally(() => underWay.delete(task));
    underWay.add(task);
  };

  return {
    message: ({ tenant_id, message_id, session_id }) =>
      run(tenant_id, () => temporal.wakeMessage({ tenant_id, message_id, session_id }), { message_id }),
    session: ({ tenant_id, session_id }) =>
      run(tenant_id, () => temporal.wakeSession({ tenant_id, session_id }), { session_id }),
    settled: async () => {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}
