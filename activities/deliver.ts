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

/** An attempt that is due: which, of what, and how long to wait before it. */
export interface DueAttempt {
  sequence: number;
  state: string;
  /** From 1. */
  attempt: number;
  wait_ms: number;
}

/** Local activities of the delivery workflow: one short, idempotent transaction each. */
export interface DeliveryRecordActivities {
  /** The oldest state that is still to be told; null when there is none. */
  nextAttempt(input: DeliveryInput): Promise<DueAttempt | null>;
  noteAttempt(input: DeliveryInput, due: DueAttempt, result: AttemptResult): Promise<void>;
  /** Gives up on all that is still to be told. */
  dropDeliveries(input: DeliveryInput): Promise<void>;
}

/** What goes out, on a queue of its own: receivers may take long, and nothing else is to wait for them. */
export interface DeliveryActivities {
  /** Null when there is nothing to tell any more. */
  postNotification(of: OfDelivery): Promise<AttemptResult | null>;
}

/** What deliveries work with. */
export interface DeliveryDeps {
  db: Db;
  secrets: Pick<Secrets, 'decrypt'>;
  outbound: Pick<Outbound, 'request'>;
  log: Logger;
}

/** The record of what was told. */
export function createDeliveryRecordActivities({ db, log }: DeliveryDeps): DeliveryRecordActivities {
  return {
    nextAttempt: (input) =>
      db.tenant(input.tenant_id, async (tx) => {
        const next = await nextDelivery(tx, input);
        if (next?.orphaned) await dropDeliveries(tx, input);
        if (!next || next.orphaned) return null;
        const attempt = next.attempts + 1;
        return { sequence: next.sequence, state: next.state, attempt, wait_ms: waitBefore(attempt) };
      }),
    noteAttempt: async (input, { sequence, attempt }, result) => {
      const { message_id, config_id } = input;
      const verdict = verdictOf(result, attempt);
      const end = verdict === 'again' ? null : verdict;
      await db.tenant(input.tenant_id, (tx) => logAttempt(tx, { ...input, sequence }, attempt, result, end));
      if (verdict === 'failed')
        log.warn({ message_id, config_id, attempt, ...result }, 'a push notification was given up');
    },
    dropDeliveries: (input) => db.tenant(input.tenant_id, (tx) => dropDeliveries(tx, input)),
  };
}

/** Tells receivers. */
export function createDeliveryActivities({ db, secrets, outbound }: DeliveryDeps): DeliveryActivities {
  return {
    postNotification: async (of) => {
      // The context is gone after the first await.
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const { cancellationSignal } = Context.current();
      const content = await readPushContent(db, secrets, of);
      return content && attemptPush(outbound, content, cancellationSignal);
    },
  };
}
