import { Context } from '@temporalio/activity';
import type { DeliveryInput } from '../contracts/workflows.js';
import { type AttemptDeps, attemptDelivery, dropDelivery, type NextAttempt } from '../deliveries/attempt-delivery.js';

export type { NextAttempt };

export type DeliveryRecordActivities = ReturnType<typeof createDeliveryRecordActivities>;

/** Local activities of the delivery workflow: one short, idempotent transaction each. */
export function createDeliveryRecordActivities({ db }: Pick<AttemptDeps, 'db'>) {
  return {
    /** Drops the delivery, and the push notifications that are to follow it, if they are not over. */
    dropDelivery: (input: DeliveryInput) => db.tenant(input.tenant_id, (tx) => dropDelivery(tx, input)),
  };
}

export type DeliveryActivities = ReturnType<typeof createDeliveryActivities>;

/** The outbound requests. They have their own task queue, so that slow receivers delay nothing else. */
export function createDeliveryActivities(deps: AttemptDeps) {
  return {
    /** Makes and records the next attempt; null when nothing is left to send, or it waits in the queue again. */
    attemptDelivery: (input: DeliveryInput, made: number | null): Promise<NextAttempt | null> => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const { cancellationSignal } = Context.current();
      return attemptDelivery(deps, input, made, cancellationSignal);
    },
  };
}
