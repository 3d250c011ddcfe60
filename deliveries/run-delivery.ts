import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import type { Secrets } from '../runtime/secrets.js';
import type { AlertDeliveryInput } from '../workflows/definitions.js';
import {
  type DeliveryWithChannel,
  dropPending,
  logDeliveryAttempt,
  moveDelivery,
  readDelivery,
} from './alert-deliveries.js';
import { type AttemptOutcome, type AttemptResult, type DeliveryCounts, verdictOf, waitBefore } from './attempts.js';
import { mayAttempt, noteOutcome, readBreaker } from './breakers.js';
import { type Channel, unsealChannel } from './channels/channel-store.js';
import type { ChannelClients } from './channels/clients.js';
import { attemptChannel, destinationOf } from './channels/send.js';
import { unsealEnvelope } from './envelope.js';
import { leaveQueue, moveQueued, putBack } from './queue.js';

export interface RunDeliveryDeps {
  db: Db;
  secrets: Pick<Secrets, 'decrypt'>;
  clients: ChannelClients;
  log: Logger;
  counts: DeliveryCounts;
}

/** What follows an attempt of a delivery. */
export interface NextAttempt {
  /** Attempts so far, those before a redelivery included. */
  made: number;
  /** The wait before the next one, in milliseconds. */
  wait_ms: number;
}

type Due = { delivery: DeliveryWithChannel; channel: Channel } | null;

/** Reads a delivery that may be attempted now; otherwise takes it out of the queue, or puts it back until its receiver answers again. */
async function takeDue({ db, secrets, clients }: RunDeliveryDeps, input: AlertDeliveryInput): Promise<Due> {
  const { tenant_id, delivery_id } = input;
  const of = { tenant_id, queue_id: delivery_id };
  return db.tenant(tenant_id, async (tx) => {
    const delivery = await readDelivery(tx, input);
    if (delivery?.status !== 'pending') {
      await leaveQueue(tx, of);
      return null;
    }
    if (delivery.channel === null) {
      await dropPending(tx, tenant_id, 'delivery_id', delivery_id);
      return null;
    }
    const channel = unsealChannel(secrets, { ...delivery.channel, secrets: delivery.channel_secrets });
    const destination = destinationOf(channel, clients.slackApiUrl);
    if (destination.receiver !== delivery.receiver) {
      // The channel has another address since: slot and breaker are those of the receiver that is called.
      await moveDelivery(tx, input, destination);
      await moveQueued(tx, of, destination.receiver);
      return null;
    }
    const breaker = await readBreaker(tx, { ...of, receiver: delivery.receiver });
    if (!mayAttempt(breaker, delivery_id)) {
      await putBack(tx, of);
      return null;
    }
    return { delivery, channel };
  });
}

/** Attempts since the last redelivery. */
const attemptsOf = ({ attempts, attempts_before }: DeliveryWithChannel) => attempts.length - attempts_before;

/** Records an attempt: in the log, in the breaker, and in the queue if it was the last one. */
async function record(
  { db, log, counts }: RunDeliveryDeps,
  input: AlertDeliveryInput,
  { delivery, channel }: NonNullable<Due>,
  { result, outcome }: { result: AttemptResult; outcome: AttemptOutcome },
): Promise<NextAttempt | null> {
  const { tenant_id, delivery_id, rule_id } = input;
  const of = { tenant_id, queue_id: delivery_id, receiver: delivery.receiver };
  const attempt = attemptsOf(delivery) + 1;
  const verdict = verdictOf(outcome, attempt, delivery.max_attempts);
  const end = verdict === 'retry' ? null : verdict;
  const opened = await db.tenant(tenant_id, async (tx) => {
    await logDeliveryAttempt(tx, input, result, outcome === 'accepted', end);
    if (end !== null) await leaveQueue(tx, of);
    return noteOutcome(tx, of, outcome);
  });
  counts.attempts[channel.type][outcome] += 1;
  if (end !== null) counts.ended[channel.type][end] += 1;
  const fields = { tenant_id, rule_id, delivery_id, receiver: delivery.receiver, ...result };
  if (opened) log.warn(fields, 'a receiver does not answer: only probes are sent to it');
  if (end === 'failed') log.warn({ ...fields, attempt }, 'a delivery was given up');
  return end === null ? { made: delivery.attempts.length + 1, wait_ms: waitBefore(attempt + 1) } : null;
}

/**
 * Makes the next attempt of a delivery and records it. A process that dies in between makes the attempt again, under the same delivery_id.
 * @param made the attempts that the caller knows of; null if it does not know. One that it does not know of is not repeated
 * @param signal aborts the attempt when this process stops
 * @returns null when the delivery is over, or waits again because its receiver does not answer
 */
export async function attemptDelivery(
  deps: RunDeliveryDeps,
  input: AlertDeliveryInput,
  made: number | null,
  signal: AbortSignal,
): Promise<NextAttempt | null> {
  const due = await takeDue(deps, input);
  if (due === null) return null;
  const { delivery, channel } = due;
  const known = delivery.attempts.length;
  if (made !== null && made !== known) return { made: known, wait_ms: waitBefore(attemptsOf(delivery) + 1) };
  const body = unsealEnvelope(deps.secrets, delivery.body);
  const { traceparent } = delivery;
  const sent = { deliveryId: input.delivery_id, body, ...(traceparent !== null && { traceparent }) };
  return record(deps, input, due, await attemptChannel(deps.clients, channel, sent, signal));
}
