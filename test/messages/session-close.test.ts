import { beforeEach, expect, test } from 'vitest';
import type { Db } from '../../db/pool.js';
import { sessionDeps } from '../../messages/cancel.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import { createSessionExpiry } from '../../sessions/session-expiry.js';
import { createSessions } from '../../sessions/sessions.js';
import { cleanUp } from '../setup/clean-up.js';
import { messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';

/** Three transactions of 200. */
const MANY = 500;

const database = await freshDatabase();
const db = database.db();
const fixture = new RecordFixture(database);
const { sessions } = fixture;
beforeEach(() => fixture.reset());

const depsOn = (on: Db) => sessionDeps(messageCore(on, { nodes: fixture.core.nodes }));

/** A session with messages that its agent works on. @returns its id */
async function sessionAtWork(explicit: boolean): Promise<string> {
  const sessionId = newId('ses');
  const { tenantId } = fixture;
  await fixture.agent(sessionId, { max_concurrent_sessions: 0 });
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, agent_type, instance_id, status, idle_timeout_seconds)
     VALUES ($1, $2, $3, 'worker', $2, 'active', 1800)`,
    [tenantId, sessionId, explicit],
  );
  const ids = Array.from({ length: MANY }, () => newId('msg'));
  const dispatches = ids.map(() => newId('dsp'));
  const values = [tenantId, sessionId, ids];
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state)
     SELECT $1, id, $2, session_uuid(uuid_of($1), $2), 'cred_1', id, 'message/send', '[]', md5(id), 60000, 'working' FROM unnest($3::text[]) AS id`,
    values,
  );
  const sent = [...values, dispatches];
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, instance_id, agent_type, current_dispatch_id, holds_slot)
     SELECT $1, id, $2, 'working', $2, 'worker', dispatch, true FROM unnest($3::text[], $4::text[]) AS given (id, dispatch)`,
    sent,
  );
  await database.query(
    `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state,
       sent_at)
     SELECT $1, dispatch, id, $2, 'worker', 'connected', 1, 1, 'sent', now() FROM unnest($3::text[], $4::text[]) AS given (id, dispatch)`,
    sent,
  );
  return sessionId;
}

/** Messages and dispatches of a session by state, the events of its cancels, and how many transactions wrote them. */
async function recordOf(sessionId: string) {
  const [record] = await database.query(
    `SELECT (SELECT count(*)::integer FROM messages WHERE session_id = $1 AND state = 'canceled') AS messages,
            (SELECT count(*)::integer FROM running_messages WHERE session_id = $1) AS running,
            (SELECT count(*)::integer FROM dispatches d JOIN messages m USING (tenant_id, message_id)
              WHERE m.session_id = $1 AND d.state = 'canceled' AND d.error_code = 'CANCELED') AS dispatches,
            count(DISTINCT e.payload ->> 'message_id') FILTER (WHERE e.event_type = 'message.canceled')::integer AS distinct_events,
            count(*) FILTER (WHERE e.event_type = 'message.canceled' AND e.payload ->> 'reason' = 'over')::integer AS canceled_events,
            count(*) FILTER (WHERE e.event_type = 'dispatch.failed')::integer AS failed_events
       FROM events e WHERE e.session_id = $1`,
    [sessionId],
  );
  return record;
}
const ALL = {
  messages: MANY,
  running: 0,
  dispatches: MANY,
  distinct_events: MANY,
  canceled_events: MANY,
  failed_events: MANY,
};

const checkAt = (sessionId: string) =>
  database.value<Date | null>('SELECT idle_check_at FROM sessions WHERE session_id = $1', [sessionId]);

/** The last of its messages, which the last part of its end waits for. */
const lockLast = (sessionId: string) =>
  RowLock.on(database.url, 'SELECT 1 FROM running_messages WHERE session_id = $1 ORDER BY message_id DESC LIMIT 1', [
    sessionId,
  ]);

/** The worker's round finds the session, and goes on with its end. */
async function expectEnded(sessionId: string): Promise<void> {
  const isDue = 'UPDATE sessions SET idle_check_at = now() WHERE session_id = $1 AND idle_check_at > now() RETURNING 1';
  expect(await database.query(isDue, [sessionId])).toHaveLength(1);
  const expiry = createSessionExpiry(depsOn(db));
  expiry.start();
  cleanUp(() => expiry.stop());
  await until(async () => (await checkAt(sessionId)) === null, { what: 'the end of the session' });
  expect(await recordOf(sessionId)).toEqual(ALL);
  expect(new Set(fixture.stopped).size).toBe(MANY);
}

/** The database as a process reaches it for so many parts of the end; the first transaction ends the session. */
function leaving(parts: number, error: Error): Db {
  let transactions = 0;
  return {
    ...db,
    tenant: async (of, work) => {
      transactions += 1;
      if (transactions > parts + 1) throw error;
      return db.tenant(of, work);
    },
  };
}

test.each([true, false])(
  'closing a session cancels what is in flight, a part at a time (explicit: %s)',
  async (explicit) => {
    const sessionId = await sessionAtWork(explicit);
    await sessions.close(fixture.caller, sessionId, 'over');
    expect(await recordOf(sessionId)).toEqual(ALL);
    expect(new Set(fixture.stopped).size).toBe(MANY);
    const transactions = await database.value(
      `SELECT count(DISTINCT transaction_id::text)::int FROM events WHERE session_id = $1 AND event_type = 'message.canceled'`,
      [sessionId],
    );
    expect(transactions).toBe(3);
    expect(await checkAt(sessionId)).toBeNull();
    await expect(sessions.close(fixture.caller, sessionId)).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
  },
);

test('a message that is locked holds up the rest of its session only, which takes nothing new', async () => {
  const sessionId = await sessionAtWork(false);
  const lock = await lockLast(sessionId);
  const closed = sessions.close(fixture.caller, sessionId, 'over');
  await until(() => lock.waiters(), { what: 'the last part to wait' });
  expect(await recordOf(sessionId)).toMatchObject({ messages: 400, canceled_events: 400 });
  expect((await fixture.queue({}, sessionId)).verdict).toBe('session_closed');
  await lock.release();
  await closed;
  expect(await recordOf(sessionId)).toEqual(ALL);
});

test.each([0, 1, 2])('a process that dies after %i parts leaves no message in flight', async (parts) => {
  const sessionId = await sessionAtWork(parts === 1);
  const dying = createSessions(depsOn(leaving(parts, new Error('the process is dead'))));
  await expect(dying.close(fixture.caller, sessionId, 'over')).rejects.toThrow('the process is dead');
  expect(await recordOf(sessionId)).toMatchObject({ messages: parts * 200 });
  await expectEnded(sessionId);
});

test('a session that is closed while the database goes away is closed, and the rest follows', async () => {
  const sessionId = await sessionAtWork(true);
  const away = new PlatformError('SERVICE_UNAVAILABLE', 'The database cannot be reached.');
  await createSessions(depsOn(leaving(1, away))).close(fixture.caller, sessionId, 'over');
  expect(await recordOf(sessionId)).toMatchObject({ messages: 200 });
  await expectEnded(sessionId);
});

test('an interrupt cancels what was accepted before it, and the session goes on', async () => {
  const sessionId = await sessionAtWork(true);
  const lock = await lockLast(sessionId);
  const interrupted = sessions.interrupt(fixture.caller, [sessionId]);
  await until(() => lock.waiters(), { what: 'the last part to wait' });
  const { verdict, message_id } = await fixture.queue({}, sessionId);
  expect(verdict).toBe('queued');
  await lock.release();
  expect(await interrupted).toMatchObject({ interrupted: 1, session_ids: [sessionId] });
  expect(await recordOf(sessionId)).toMatchObject({ messages: MANY, distinct_events: MANY });
  expect(await database.column('SELECT state FROM messages WHERE message_id = $1', [message_id])).toEqual([
    'submitted',
  ]);
});
