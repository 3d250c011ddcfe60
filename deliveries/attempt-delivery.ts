import type { DeliveryInput } from '../contracts/workflows.js';
import type { Db, Tx } from '../db/pool.js';
import { holdSecretKey } from '../db/secret-key.js';
import { replaceMisdirected } from '../messages/input/callback-tokens.js';
import type { Logger } from '../runtime/logger.js';
import { type Secrets, UnreadableValue } from '../runtime/secrets.js';
import { type Attempted, type AttemptResult, type DeliveryCounts, verdictOf, waitBefore } from './attempts.js';
import { answered, mayAttempt, noteAnswer, readBreaker } from './breakers.js';
import type { ChannelClients } from './channels/clients.js';
import { type Envelope, sealBody, unsealBody, withToken } from './envelope.js';
import {
  dropPending,
  logAttempt,
  moveDelivery,
  type PendingDelivery,
  readPending,
  storeBody,
} from './pending-deliveries.js';
import { pushBody } from './push/push-content.js';
import { leaveQueue, lockQueued, moveQueued, putBack, queueIdOf } from './queue.js';
import { type Recipient, recipientOf } from './recipient.js';

/** The dependencies of the delivery activities. */
export interface AttemptDeps {
  db: Db;
  secrets: Pick<Secrets, 'encrypt' | 'decrypt' | 'activate'>;
  clients: ChannelClients;
  log: Logger;
  counts: DeliveryCounts;
}

/** What follows an attempt. */
export interface NextAttempt {
  /** Of the next delivery: of push notifications the one that follows. */
  event_type: string;
  /** Its attempts so far, those before a redelivery included; null before this is known. */
  made: number | null;
  /** The wait before the next one, in milliseconds. */
  wait_ms: number;
}

/** A delivery that may be attempted now. */
interface Due {
  delivery: PendingDelivery;
  recipient: Recipient;
  body: Buffer;
}

/** A delivery that can never be attempted: no present key opens what is stored of it. */
interface Unreadable {
  delivery: PendingDelivery;
  recipient: null;
}

const UNREADABLE: AttemptResult = { status_code: null, error: 'UNREADABLE', duration_ms: 0 };

/**
 * The bytes of an alert rule's delivery for where its channel leads now. A callback token goes nowhere but where it was issued for: since that
 * has changed, the delivery carries a new one from here on.
 */
async function directed(
  { secrets }: AttemptDeps,
  tx: Tx,
  delivery: PendingDelivery,
  body: Buffer,
  destination: string,
): Promise<Buffer> {
  const envelope = JSON.parse(body.toString()) as Envelope;
  const { callback_token: token } = envelope;
  if (token === undefined) return body;
  const { tenant_id, writers } = delivery;
  const fresh = await replaceMisdirected(tx, { tenant_id, token }, { destination, writers: writers ?? [] });
  if (fresh === null) return body;
  const bytes = Buffer.from(JSON.stringify(withToken(envelope, fresh)));
  await holdSecretKey(tx, secrets);
  await storeBody(tx, delivery, sealBody(secrets, bytes));
  return bytes;
}

/** The bytes that every attempt sends: those of a push notification are made and sealed for the first. Null when its message is gone. */
async function bodyOf(
  deps: AttemptDeps,
  tx: Tx,
  delivery: PendingDelivery,
  { destination }: Recipient,
): Promise<Buffer | null> {
  const { secrets } = deps;
  if (delivery.body !== null) {
    const body = unsealBody(secrets, delivery.body);
    return destination === null ? body : directed(deps, tx, delivery, body, destination);
  }
  const bytes = delivery.config && (await pushBody(tx, delivery, delivery.config.protocol_version));
  if (bytes === null) return null;
  await holdSecretKey(tx, secrets);
  await storeBody(tx, delivery, sealBody(secrets, bytes));
  return bytes;
}

/**
 * Opens what is stored of a delivery.
 * @returns null where nobody is to receive it any more
 * @throws PlatformError SERVICE_UNAVAILABLE in a process that may not have the key: another may
 */
async function opened(deps: AttemptDeps, tx: Tx, delivery: PendingDelivery): Promise<Due | Unreadable | null> {
  try {
    const recipient = recipientOf(deps.secrets, deps.clients, delivery);
    const body = recipient && (await bodyOf(deps, tx, delivery, recipient));
    return recipient && body && { delivery, recipient, body };
  } catch (error) {
    if (!(error instanceof UnreadableValue)) throw error;
    await holdSecretKey(tx, deps.secrets);
    return { delivery, recipient: null };
  }
}

/** Reads the delivery that may be attempted now; otherwise gives its slot up, until its receiver answers again, or for ever. */
async function takeDue(deps: AttemptDeps, input: DeliveryInput): Promise<Due | Unreadable | null> {
  const { tenant_id } = input;
  const place = { tenant_id, queue_id: queueIdOf(input) };
  return deps.db.tenant(tenant_id, async (tx) => {
    // Locked first: what is added from here on waits, finds no place, and is started again.
    const isQueued = await lockQueued(tx, place);
    const delivery = isQueued ? await readPending(tx, input) : null;
    if (delivery === null) {
      await leaveQueue(tx, place);
      return null;
    }
    const due = await opened(deps, tx, delivery);
    if (due === null) {
      await dropDelivery(tx, input);
      return null;
    }
    if (due.recipient === null) return due;
    const { url, receiver } = due.recipient;
    if (url !== delivery.url || receiver !== delivery.receiver) await moveDelivery(tx, delivery, due.recipient);
    if (receiver !== delivery.receiver) {
      // Slot and breaker are those of the receiver that is called.
      await moveQueued(tx, place, receiver);
      return null;
    }
    const breaker = await readBreaker(tx, { ...place, receiver: delivery.receiver });
    if (mayAttempt(breaker, place.queue_id)) return due;
    await putBack(tx, place);
    return null;
  });
}

/** Ends what is queued at the place of a delivery: nobody is to receive it any more. */
export function dropDelivery(tx: Tx, input: DeliveryInput): Promise<void> {
  const { tenant_id } = input;
  if (!('config_id' in input)) return dropPending(tx, tenant_id, { delivery_id: input.delivery_id });
  const { message_id, config_id } = input;
  return dropPending(tx, tenant_id, { message_id, config_id });
}

/** What follows at a place in the queue, which is left when nothing is pending there. */
async function nextAt(tx: Tx, input: DeliveryInput): Promise<NextAttempt | null> {
  const next = await readPending(tx, input);
  if (next !== null) return { event_type: next.event_type, made: next.made, wait_ms: pauseLeft(next) };
  await leaveQueue(tx, { tenant_id: input.tenant_id, queue_id: queueIdOf(input) });
  return null;
}

/** What is left of the pause before the next attempt, in milliseconds; none before the first one since a redelivery. */
function pauseLeft({ made, attempts_before, since_last_ms }: PendingDelivery): number {
  const attempt = made - attempts_before + 1;
  return Math.max(0, Math.ceil(waitBefore(attempt) - (since_last_ms ?? 0)));
}

/** Records an attempt: in the log, in the breaker, and in the queue if nothing follows. */
async function record(
  { db, log, counts }: AttemptDeps,
  input: DeliveryInput,
  { delivery, recipient }: Due | Unreadable,
  { result, outcome }: Attempted,
): Promise<NextAttempt | null> {
  const { tenant_id, delivery_id, receiver, made, attempts_before, max_attempts, event_type } = delivery;
  const place = { tenant_id, queue_id: queueIdOf(input), receiver };
  const attempt = made - attempts_before + 1;
  const verdict = verdictOf(outcome, attempt, max_attempts);
  const end = verdict === 'retry' ? null : verdict;
  const { opens, logged, next } = await db.tenant(tenant_id, async (tx) => {
    await lockQueued(tx, place);
    const logged = await logAttempt(tx, delivery, result, outcome === 'accepted', end);
    const opens = logged && (await noteAnswer(tx, place, answered(result, outcome)));
    return { opens, logged, next: await nextAt(tx, input) };
  });
  if (!logged) return next; // by another run of this attempt, or the delivery was dropped meanwhile
  if (recipient !== null) counts.attempts[recipient.channel][outcome] += 1;
  if (recipient !== null && end !== null) counts.ended[recipient.channel][end] += 1;
  const { queue_id } = place;
  const fields = { tenant_id, delivery_id, queue_id, event_type, receiver, attempt, ...result };
  if (opens) log.warn(fields, 'a receiver does not answer: only probes are sent to it');
  if (end === 'failed') log.warn(fields, 'a delivery was given up');
  return next;
}

/**
 * Makes the next attempt at a place in the queue and records it. A process that dies in between makes the attempt again, with the same bytes
 * under the same delivery_id.
 * @param made how many attempts the caller knows of; null: unknown. If the record has another number, nothing is sent and the record's number
 * is returned. With null an attempt is made unless a pause is left.
 * @param signal aborts the attempt when this process stops
 * @returns null when nothing is pending there, or its receiver does not answer and it waits again
 */
export async function attemptDelivery(
  deps: AttemptDeps,
  input: DeliveryInput,
  made: number | null,
  signal: AbortSignal,
): Promise<NextAttempt | null> {
  const due = await takeDue(deps, input);
  if (due === null) return null;
  const { delivery, recipient } = due;
  if (recipient === null) return record(deps, input, due, { result: UNREADABLE, outcome: 'refused' });
  const { event_type } = delivery;
  if (made !== delivery.made) {
    const wait_ms = pauseLeft(delivery);
    if (made !== null || wait_ms > 0) return { event_type, made: delivery.made, wait_ms };
  }
  const { traceparent, delivery_id } = delivery;
  const sent = { deliveryId: delivery_id, body: due.body, ...(traceparent !== null && { traceparent }) };
  return record(deps, input, due, await recipient.attempt(sent, signal));
}
