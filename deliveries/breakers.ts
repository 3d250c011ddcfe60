import type { UnavailableReceiver } from '../contracts/api/alerts.js';
import { queryJson } from '../db/json-rows.js';
import type { Tx } from '../db/pool.js';
import type { AttemptOutcome, AttemptResult } from './attempts.js';
import type { InQueue } from './queue.js';

/** Failures in a row that open the breaker. One delivery has at most four attempts, so none opens it alone unless it is redelivered. */
const FAILURES_TO_OPEN = 5;
/** How long the breaker stays open before its first probe; each failed probe doubles it. */
const OPEN_MS = 5_000;
const OPEN_MS_MAX = 300_000;

/** The circuit breaker of a receiver: a row of `receiver_breakers`. Without one the receiver answers. */
export interface Breaker {
  failures: number;
  /** Null while it is closed. */
  open_until: Date | null;
  /** The `queue_id` that may send although it is open. */
  probe: string | null;
}

/** Whether a delivery may be attempted: while the breaker is open, only the probe may. */
export function mayAttempt(breaker: Breaker | null, queueId: string): boolean {
  return breaker === null || breaker.open_until === null || breaker.probe === queueId;
}

/**
 * What a failed attempt makes of the breaker.
 * @returns failures in a row, and for how many milliseconds it is open from now on (0: it stays closed); null when nothing changes, because
 * the attempt began before the breaker opened
 */
export function afterFailure(breaker: Breaker, queueId: string): { failures: number; openMs: number } | null {
  const failures = breaker.failures + 1;
  if (breaker.open_until !== null && breaker.probe !== queueId) return null;
  if (failures < FAILURES_TO_OPEN) return { failures, openMs: 0 };
  return { failures, openMs: Math.min(OPEN_MS * 2 ** (failures - FAILURES_TO_OPEN), OPEN_MS_MAX) };
}

/** A delivery in the queue and its receiver. */
export interface QueuedFor extends InQueue {
  receiver: string;
}

/** The breaker of a receiver; null while it answers. */
export async function readBreaker(tx: Tx, { tenant_id, receiver }: QueuedFor): Promise<Breaker | null> {
  const [row] = await tx.query<Breaker>(
    'SELECT failures, open_until, probe FROM receiver_breakers WHERE tenant_id = $1 AND receiver = $2',
    [tenant_id, receiver],
  );
  return row ?? null;
}

const UNAVAILABLE = `
  SELECT receiver, opened_at AS since, open_until AS next_probe_at FROM receiver_breakers
   WHERE tenant_id = $1 AND receiver = ANY ($2) AND open_until IS NOT NULL AND opened_at IS NOT NULL`;

/** Those of a tenant's receivers that do not answer, as the API shows them. */
export async function readUnavailable(
  tx: Tx,
  tenantId: string,
  receivers: string[],
): Promise<Map<string, UnavailableReceiver>> {
  type Row = { receiver: string; since: string; next_probe_at: string };
  const rows = await queryJson<Row>(tx, UNAVAILABLE, [tenantId, receivers]);
  return new Map(rows.map(({ receiver, ...shown }) => [receiver, { state: 'unavailable', ...shown }]));
}

const ANSWERED = 'DELETE FROM receiver_breakers WHERE tenant_id = $1 AND receiver = $2';
/** Locks the breaker, which is made where the receiver has none; it changes nothing. */
const LOCK_BREAKER = `
  INSERT INTO receiver_breakers AS b (tenant_id, receiver, failures) VALUES ($1, $2, 0)
    ON CONFLICT (tenant_id, receiver) DO UPDATE SET failures = b.failures RETURNING failures, open_until, probe`;
const SAVE = `
  UPDATE receiver_breakers SET failures = $3, probe = NULL, changed_at = now(),
         open_until = CASE WHEN $4::bigint > 0 THEN now() + $4 * interval '1 ms' END,
         opened_at = CASE WHEN $4::bigint > 0 THEN coalesce(opened_at, now()) END
   WHERE tenant_id = $1 AND receiver = $2`;

/** What an attempt says about its receiver: it answered, or it did not; null where the platform itself refused to send. */
export function answered({ status_code }: AttemptResult, outcome: AttemptOutcome): boolean | null {
  if (outcome === 'unavailable') return false;
  return status_code === null && outcome === 'refused' ? null : true;
}

/**
 * Records in the breaker how an attempt went. Any answer of the receiver closes it.
 * @param hasAnswered as `answered` says
 * @returns whether the attempt has opened the breaker, or left it open as a failed probe
 */
export async function noteAnswer(tx: Tx, of: QueuedFor, hasAnswered: boolean | null): Promise<boolean> {
  const key = [of.tenant_id, of.receiver];
  if (hasAnswered === null) return false;
  if (hasAnswered) {
    await tx.query(ANSWERED, key);
    return false;
  }
  const [breaker] = await tx.query<Breaker>(LOCK_BREAKER, key);
  const next = breaker ? afterFailure(breaker, of.queue_id) : null;
  if (next === null) return false;
  await tx.query(SAVE, [...key, next.failures, next.openMs]);
  return next.openMs > 0;
}
