import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { tooManyCalls } from '../../db/errors.js';
import { errorMessage, isTenantBusy } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';

/**
 * When an activity of a busy tenant is tried again, in milliseconds. Longer than `localRetryThreshold` (workflows/stubs.ts), so that the pause is a
 * timer of its workflow: a shorter one would keep the slot of the workflow's task.
 */
const [RETRY_MIN_MS, RETRY_MAX_MS] = [2_500, 4_500];

function busy(error: unknown): ApplicationFailure {
  const nextRetryDelay = Math.round(RETRY_MIN_MS + Math.random() * (RETRY_MAX_MS - RETRY_MIN_MS));
  return ApplicationFailure.create({ type: 'RATE_LIMITED', message: errorMessage(error), nextRetryDelay });
}

/**
 * Gives each tenant a share of the slots for local activities: they wait there for the tenant's turns at the database. Those beyond the share, and
 * those that had no turn in time, leave their slots and are tried again later. So a tenant whose turns are used up holds up no other's workflows.
 */
export function tenantShares(share: number): ActivityInterceptorsFactory {
  const bounds = { limit: Number.POSITIVE_INFINITY, perKey: share, waitingMax: 0 };
  const shares = new FairSemaphore({ ...bounds, refusal: tooManyCalls });
  return ({ info }) => {
    if (!info.isLocal) return {};
    return {
      inbound: {
        execute: async (input, next) => {
          const { tenant_id } = input.args[0] as { tenant_id: string };
          try {
            return await shares.run(tenant_id, () => next(input));
          } catch (error) {
            throw isTenantBusy(error) ? busy(error) : error;
          }
        },
      },
    };
  };
}
