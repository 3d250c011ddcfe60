import { Context } from '@temporalio/activity';
import type { AttemptResult } from '../deliveries/attempts.js';
import { attemptDelivery, dropDelivery, type NextAttempt, type RunDeliveryDeps } from '../deliveries/run-delivery.js';
import type { AlertDeliveryInput, PushConfigInput } from '../workflows/definitions.js';

/** The next attempt of a push notification, as workflows had it. */
export interface DueAttempt {
  sequence: number;
  state: string;
  /** From 1. */
  attempt: number;
  wait_ms: number;
}

export type EarlierRecordActivities = ReturnType<typeof createEarlierRecordActivities>;

/** Local activities of the workflows in workflows/earlier-deliveries.ts. Those of push notifications have nothing left to send: what waited is in the queue. */
export function createEarlierRecordActivities({ db }: Pick<RunDeliveryDeps, 'db'>) {
  return {
    nextAttempt: async (_input: PushConfigInput): Promise<DueAttempt | null> => null,
    noteAttempt: async (_input: PushConfigInput, _due: DueAttempt, _result: AttemptResult): Promise<void> => undefined,
    dropDeliveries: async (_input: PushConfigInput): Promise<void> => undefined,
    dropAlertDelivery: (input: AlertDeliveryInput) => db.tenant(input.tenant_id, (tx) => dropDelivery(tx, input)),
  };
}

export type EarlierDeliveryActivities = ReturnType<typeof createEarlierDeliveryActivities>;

/** The outbound requests of the same workflows. */
export function createEarlierDeliveryActivities(deps: RunDeliveryDeps) {
  return {
    postNotification: async (_of: PushConfigInput | object): Promise<AttemptResult | null> => null,
    attemptAlertDelivery: (input: AlertDeliveryInput, made: number | null): Promise<NextAttempt | null> =>
      attemptDelivery(deps, input, made, Context.current().cancellationSignal),
  };
}
