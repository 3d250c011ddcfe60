import pLimit from 'p-limit';
import type { Db } from '../db/pool.js';
import { newEventId } from '../runtime/ids.js';
import { Loop } from '../runtime/loop.js';
import { allOrFirstFailure } from '../runtime/promises/all-or-first-failure.js';
import type { SessionDeps, SessionRef } from './session-deps.js';
import { cancelLeft } from './session-end.js';

/** How many sessions one transaction looks at: few, so that no message waits long for the processor, and more when expiry is late. */
const [BATCH, BATCH_MAX] = [100, 400];
/** From the start of a full batch to the start of the next one, in milliseconds: 100,000 sessions take 50 s. */
const PERIOD_MS = 50;
/** How late the oldest due session is, in milliseconds, when expiry begins to hurry, and when it makes no pause any more. */
const [HURRY_FROM_MS, NO_PAUSE_FROM_MS] = [40_000, 58_000];
/** Between two searches when none is due, in milliseconds. */
const IDLE_MS = 5_000;

/** Ended sessions whose messages are canceled at once. */
const CANCELS_AT_ONCE = 4;

/** Locks sessions that are due, so that no message is accepted into them; workers share them. */
const CLAIM = `
  SELECT tenant_id, session_id, status, ended_reason, milliseconds_between(idle_check_at, now()) AS late_ms FROM sessions
   WHERE idle_check_at <= now() ORDER BY idle_check_at LIMIT $1 FOR UPDATE SKIP LOCKED`;

/** Ends the idle sessions, with their events, and moves the check of the others. Sees messages that were accepted before the locks. */
const EXPIRE = `
  WITH checked AS MATERIALIZED (
    SELECT i.tenant_id, i.session_id, i.idles_at, claimed.event_id FROM idle_times($1::text[], $2::text[]) i
      JOIN unnest($1::text[], $2::text[], $3::text[]) AS claimed (tenant_id, session_id, event_id) USING (tenant_id, session_id)),
  kept AS (
    UPDATE sessions s SET idle_check_at = c.idles_at FROM checked c
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id AND c.idles_at > now()),
  expired AS (
    UPDATE sessions s SET status = 'expired', ended_at = now(), ended_reason = 'idle', idle_check_at = NULL FROM checked c
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id AND c.idles_at <= now()
    RETURNING s.tenant_id, s.session_id, c.event_id, milliseconds_between(s.created_at, now()) AS duration_ms)
  INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, types, events)
    SELECT uuid_of(tenant_id), group_of(event_id), session_uuid(uuid_of(tenant_id), session_id), session_name(session_id), event_bit('session.closed'),
           jsonb_build_array(jsonb_build_object('reason', 'idle', 'duration_ms', duration_ms)) FROM expired`;

/** Gives this process a minute to cancel the messages of ended sessions, before another process tries. */
const CLAIM_ENDED = `
  UPDATE sessions s SET idle_check_at = now() + interval '1 minute' FROM unnest($1::text[], $2::text[]) AS ended (tenant_id, session_id)
   WHERE s.tenant_id = ended.tenant_id AND s.session_id = ended.session_id`;

interface ClaimedSession extends SessionRef {
  status: string;
  ended_reason: string | null;
  /** How long the session has been due, in milliseconds. */
  late_ms: number;
}

const columnsOf = (rows: SessionRef[]) => [rows.map((row) => row.tenant_id), rows.map((row) => row.session_id)];

/** Looks at one batch of sessions that are due. @returns those that it found, the oldest first */
async function expireBatch(db: Db, size: number): Promise<ClaimedSession[]> {
  return db.system(async (tx) => {
    const claimed = await tx.query<ClaimedSession>(CLAIM, [size], 'claim_idle_sessions');
    const active = claimed.filter(({ status }) => status === 'active');
    const ended = claimed.filter(({ status }) => status !== 'active');
    const eventIds = active.map(() => newEventId());
    if (active.length > 0) await tx.query(EXPIRE, [...columnsOf(active), eventIds], 'expire_idle_sessions');
    if (ended.length > 0) await tx.query(CLAIM_ENDED, columnsOf(ended));
    return claimed;
  });
}

/** Cancels the messages that a process which died left in flight in sessions that it had ended. */
async function finishEnded(deps: SessionDeps, claimed: ClaimedSession[]): Promise<void> {
  const ended = claimed.filter(({ status }) => status !== 'active');
  const limit = pLimit(CANCELS_AT_ONCE);
  const finish = (session: ClaimedSession) => cancelLeft(deps, session, session.ended_reason ?? '');
  await allOrFirstFailure(ended.map((session) => limit(finish, session)));
}

/**
 * How expiry goes on after a full batch whose oldest session had been due for `lateMs`. It pauses until the period is over, but never for less
 * than the batch took, so that it takes half of one database connection at most. As the delay nears a minute, batches get larger and pauses
 * shorter, so that it catches up with any rate at which sessions are opened.
 */
export function paceAfter({ tookMs, lateMs }: { tookMs: number; lateMs: number }): { size: number; pauseMs: number } {
  const hurry = Math.min(1, Math.max(0, (lateMs - HURRY_FROM_MS) / (NO_PAUSE_FROM_MS - HURRY_FROM_MS)));
  const pauseMs = Math.max(tookMs, PERIOD_MS - tookMs) * (1 - hurry);
  return { size: Math.round(BATCH + (BATCH_MAX - BATCH) * hurry), pauseMs };
}

/**
 * Ends idle sessions that were opened by a message. They have no workflow, and end in batches with pauses; sessions of `/sessions/init` have a
 * workflow each. It also cancels what is left in flight in ended sessions of both kinds.
 */
export function createSessionExpiry(deps: SessionDeps): Loop {
  const { db, log } = deps;
  let size = BATCH;
  const work = async (): Promise<number> => {
    const startedAt = performance.now();
    const claimed = await expireBatch(db, size);
    await finishEnded(deps, claimed);
    const [oldest] = claimed;
    if (!oldest || claimed.length < size) return IDLE_MS;
    const pace = paceAfter({ tookMs: performance.now() - startedAt, lateMs: oldest.late_ms });
    size = pace.size;
    return pace.pauseMs;
  };
  return new Loop({ name: 'session expiry', intervalMs: IDLE_MS, immediate: true, work, log });
}
