import { Context } from '@temporalio/activity';
import type { Db } from '../db/pool.js';
import { attemptPush, verdictOf, waitBefore } from '../deliveries/push-attempt.js';
import { readPushContent } from '../deliveries/push-content.js';
import {
  type AttemptResult,
  dropDeliveries,
  logAttempt,
  nextDelivery,
  type OfDelivery,
} from '../deliveries/push-deliveries.js';
import type { Outbound } from '../http/outbound.js';
import type { Logger } from '../runtime/logger.js';
import type { Secrets } from '../runtime/secrets.js';
import type { DeliveryInput } from '../workflows/definitions.js';

/** The next attempt of a delivery. */
export interface DueAttempt {
  sequence: number;
  state: string;
  /** From 1. */
  attempt: number;
  wait_ms: number;
}

/** The dependencies of the delivery activities. */
export interface DeliveryDeps {
  db: Db;
  secrets: Pick<Secrets, 'decrypt'>;
  outbound: Pick<Outbound, 'request'>;
  log: Logger;
}

export type DeliveryRecordActivities = ReturnType<typeof createDeliveryRecordActivities>;

/** Local activities of the delivery workflow: one short, idempotent transaction each. */
export function createDeliveryRecordActivities({ db, log }: DeliveryDeps) {
  return {
    /** The next attempt of the oldest unfinished delivery; null when there is none. */
    nextAttempt: (input: DeliveryInput): Promise<DueAttempt | null> =>
      db.tenant(input.tenant_id, async (tx) => {
        const next = await nextDelivery(tx, input);
        if (next?.orphaned) await dropDeliveries(tx, input);
        if (!next || next.orphaned) return null;
        const attempt = next.attempts + 1;
        return { sequence: next.sequence, state: next.state, attempt, wait_ms: waitBefore(attempt) };
      }),
    noteAttempt: async (
      input: DeliveryInput,
      { sequence, attempt }: DueAttempt,
      result: AttemptResult,
    ): Promise<void> => {
      const { message_id, config_id } = input;
      const verdict = verdictOf(result, attempt);
      const end = verdict === 'retry' ? null : verdict;
      await db.tenant(input.tenant_id, (tx) => logAttempt(tx, { ...input, sequence }, attempt, result, end));
      if (verdict === 'failed')
        log.warn({ message_id, config_id, attempt, ...result }, 'a push notification was given up');
    },
    /** Drops all unfinished deliveries of the config. */
    dropDeliveries: (input: DeliveryInput) => db.tenant(input.tenant_id, (tx) => dropDeliveries(tx, input)),
  };
}

export type DeliveryActivities = ReturnType<typeof createDeliveryActivities>;

/** The outbound requests. They have their own task queue, so that slow receivers delay nothing else. */
export function createDeliveryActivities({ db, secrets, outbound }: DeliveryDeps) {
  return {
    /** Makes one attempt; null when the delivery has ended or its config was removed. */
    postNotification: async (of: OfDelivery): Promise<AttemptResult | null> => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const { cancellationSignal } = Context.current();
      const content = await readPushContent(db, secrets, of);
      return content && attemptPush(outbound, content, cancellationSignal);
    },
  };
}
