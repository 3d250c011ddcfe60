import pLimit from 'p-limit';
import type { Db } from '../db/pool.js';
import { newEventId } from '../runtime/ids.js';
import { Loop } from '../runtime/loop.js';
import type { SessionDeps, SessionRef } from './session-deps.js';
import { cancelLeft } from './session-end.js';

/** Sessions that one transaction looks at: few, so that no message waits long for the processor. */
const BATCH = 100;
/** From the start of a full batch to the start of the next one, in milliseconds: 100,000 sessions take 50 s. */
const PERIOD_MS = 50;
/** Between two searches when none is due, in milliseconds. */
const IDLE_MS = 5_000;

/** Ended sessions whose messages are canceled at once. */
const CANCELS_AT_ONCE = 4;

/** Locks sessions that are due, so that no message is accepted into them; workers share them. */
const CLAIM = `
  SELECT tenant_id, session_id, status, ended_reason FROM sessions WHERE idle_check_at <= now() ORDER BY idle_check_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`;

/** Ends those that idle, with their events, and moves the check of the others to the end of their idle time. Sees what was accepted before the locks. */
const EXPIRE = `
  WITH due AS MATERIALIZED (
    SELECT s.tenant_id, s.session_id, s.created_at, claimed.event_id, s.idle_timeout_seconds * interval '1 s' AS timeout
      FROM unnest($1::text[], $2::text[], $3::text[]) AS claimed (tenant_id, session_id, event_id)
      JOIN sessions s USING (tenant_id, session_id)),
  checked AS MATERIALIZED (
    SELECT due.*, EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = due.tenant_id AND r.session_id = due.session_id
                             AND r.state IN ('submitted', 'working', 'input-required')) OR has_open_plan(due.tenant_id, due.session_id) AS is_running,
           greatest(due.created_at, (SELECT max(m.updated_at) FROM messages m WHERE m.session_id = due.session_id
             AND m.tenant_id = due.tenant_id AND m.message_id >= id_bound('msg', (due.created_at - interval '1 day')::date))) + due.timeout AS idle_at
      FROM due),
  kept AS (
    UPDATE sessions s SET idle_check_at = CASE WHEN c.is_running THEN now() + c.timeout ELSE c.idle_at END FROM checked c
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id AND (c.is_running OR c.idle_at > now())),
  expired AS (
    UPDATE sessions s SET status = 'expired', ended_at = now(), ended_reason = 'idle', idle_check_at = NULL FROM checked c
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id AND NOT c.is_running AND c.idle_at <= now()
    RETURNING s.tenant_id, s.session_id, c.event_id, milliseconds_between(s.created_at, now()) AS duration_ms)
  INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, types, events)
    SELECT uuid_of(tenant_id), group_of(event_id), session_uuid(uuid_of(tenant_id), session_id), session_name(session_id), event_bit('session.closed'),
           jsonb_build_array(jsonb_build_object('reason', 'idle', 'duration_ms', duration_ms)) FROM expired`;

/** Gives the canceling of ended sessions some time before others repeat it. */
const CLAIM_ENDED = `
  UPDATE sessions s SET idle_check_at = now() + interval '1 minute' FROM unnest($1::text[], $2::text[]) AS ended (tenant_id, session_id)
   WHERE s.tenant_id = ended.tenant_id AND s.session_id = ended.session_id`;

interface ClaimedSession extends SessionRef {
  status: string;
  ended_reason: string | null;
}

const columnsOf = (rows: SessionRef[]) => [rows.map((row) => row.tenant_id), rows.map((row) => row.session_id)];

/** Looks at one batch of sessions that are due. @returns those that it found */
async function expireBatch(db: Db): Promise<ClaimedSession[]> {
  return db.system(async (tx) => {
    const claimed = await tx.query<ClaimedSession & Record<string, unknown>>(CLAIM, [], 'claim_idle_sessions');
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
  const results = await Promise.allSettled(ended.map((session) => limit(finish, session)));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/**
 * The pause after a full batch: until the period is over, but never less than the batch took, so that expiry takes half of one database
 * connection at most.
 */
export function pauseAfter(tookMs: number): number {
  return Math.max(tookMs, PERIOD_MS - tookMs);
}

/**
 * Ends the sessions that idle out among those that a message opened. They have no workflow: they end in batches with pauses. Sessions of
 * `/sessions/init` have a workflow each. It also finishes the end of sessions of both kinds whose messages were not all canceled.
 */
export function createSessionExpiry(deps: SessionDeps): Loop {
  const { db, log } = deps;
  const work = async (): Promise<number> => {
    const startedAt = performance.now();
    const claimed = await expireBatch(db);
    await finishEnded(deps, claimed);
    return claimed.length < BATCH ? IDLE_MS : pauseAfter(performance.now() - startedAt);
  };
  return new Loop({ name: 'session expiry', intervalMs: IDLE_MS, immediate: true, work, log });
}
