import { Context } from '@temporalio/activity';
import { dropPending } from '../deliveries/alert-deliveries.js';
import { type AttemptResult, outcomeOf, verdictOf, waitBefore } from '../deliveries/attempts.js';
import { mayAttempt, noteOutcome, readBreaker } from '../deliveries/breakers.js';
import { attemptPush } from '../deliveries/push-attempt.js';
import { readPushContent } from '../deliveries/push-content.js';
import { dropDeliveries, logAttempt, nextDelivery, type OfDelivery } from '../deliveries/push-deliveries.js';
import { leaveQueue, lockQueued, pushQueueId, putBack } from '../deliveries/queue.js';
import { attemptDelivery, type NextAttempt, type RunDeliveryDeps } from '../deliveries/run-delivery.js';
import type { AlertDeliveryInput, DeliveryInput } from '../workflows/definitions.js';

/** The next attempt of a delivery. */
export interface DueAttempt {
  sequence: number;
  state: string;
  /** From 1. */
  attempt: number;
  wait_ms: number;
}

export type { NextAttempt };

/** The dependencies of the delivery activities. */
export type DeliveryDeps = RunDeliveryDeps;

export type DeliveryRecordActivities = ReturnType<typeof createDeliveryRecordActivities>;

const inQueue = (input: DeliveryInput) => ({ tenant_id: input.tenant_id, queue_id: pushQueueId(input) });

/** Local activities of the delivery workflows: one short, idempotent transaction each. */
export function createDeliveryRecordActivities({ db, log, counts }: DeliveryDeps) {
  return {
    /**
     * The next attempt of the oldest unfinished push notification; null when there is none, which takes the config out of the queue, and
     * while its receiver does not answer, which puts it back.
     */
    nextAttempt: (input: DeliveryInput): Promise<DueAttempt | null> =>
      db.tenant(input.tenant_id, async (tx) => {
        const queued = inQueue(input);
        // Locked first: what is queued from here on finds no row, or waits, and starts the workflow again.
        const receiver = await lockQueued(tx, queued);
        const next = await nextDelivery(tx, input);
        if (next?.orphaned) await dropDeliveries(tx, input);
        if (!next || next.orphaned) {
          await leaveQueue(tx, queued);
          return null;
        }
        const breaker = receiver === null ? null : await readBreaker(tx, { ...queued, receiver });
        if (!mayAttempt(breaker, queued.queue_id)) {
          await putBack(tx, queued);
          return null;
        }
        const attempt = next.attempts + 1;
        return { sequence: next.sequence, state: next.state, attempt, wait_ms: waitBefore(attempt) };
      }),
    noteAttempt: async (
      input: DeliveryInput,
      { sequence, attempt }: DueAttempt,
      result: AttemptResult,
    ): Promise<void> => {
      const { tenant_id, message_id, config_id } = input;
      const outcome = outcomeOf(result);
      const verdict = verdictOf(outcome, attempt);
      const end = verdict === 'retry' ? null : verdict;
      const opened = await db.tenant(tenant_id, async (tx) => {
        await logAttempt(tx, { ...input, sequence }, attempt, result, end);
        const receiver = await lockQueued(tx, inQueue(input));
        return receiver !== null && noteOutcome(tx, { ...inQueue(input), receiver }, outcome);
      });
      counts.attempts.push[outcome] += 1;
      if (end !== null) counts.ended.push[end] += 1;
      const fields = { tenant_id, message_id, config_id, attempt, ...result };
      if (opened) log.warn(fields, 'a receiver does not answer: only probes are sent to it');
      if (verdict === 'failed') log.warn(fields, 'a push notification was given up');
    },
    /** Drops all unfinished push notifications of the config. */
    dropDeliveries: (input: DeliveryInput) =>
      db.tenant(input.tenant_id, async (tx) => {
        await lockQueued(tx, inQueue(input));
        await dropDeliveries(tx, input);
        await leaveQueue(tx, inQueue(input));
      }),
    /** Drops the delivery of an alert, if it is not over. */
    dropAlertDelivery: ({ tenant_id, delivery_id }: AlertDeliveryInput) =>
      db.tenant(tenant_id, (tx) => dropPending(tx, tenant_id, 'delivery_id', delivery_id)),
  };
}

export type DeliveryActivities = ReturnType<typeof createDeliveryActivities>;

/** The outbound requests. They have their own task queue, so that slow receivers delay nothing else. */
export function createDeliveryActivities(deps: DeliveryDeps) {
  const { db, secrets, clients } = deps;
  return {
    /** Makes one attempt; null when the delivery has ended or its config was removed. */
    postNotification: async (of: OfDelivery): Promise<AttemptResult | null> => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const { cancellationSignal } = Context.current();
      const content = await readPushContent(db, secrets, of);
      return content && attemptPush(clients.outbound, content, cancellationSignal);
    },
    /** Makes and records the next attempt of an alert's delivery; null when it is over or waits in the queue again. */
    attemptAlertDelivery: (input: AlertDeliveryInput, made: number | null): Promise<NextAttempt | null> => {
      const { cancellationSignal } = Context.current();
      return attemptDelivery(deps, input, made, cancellationSignal);
    },
  };
}
