import { expect, test } from 'vitest';
import { runAcceptTransaction, UNCOUNTED } from '../../../messages/accept/accept-transaction.js';
import { draftOf } from '../../../messages/accept/draft.js';
import { sessionDeps } from '../../../messages/cancel.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import { newId } from '../../../runtime/ids.js';
import { createSessionExpiry } from '../../../sessions/session-expiry.js';
import { positionEvents } from '../../../telemetry/event-sequencer.js';
import { rollUpUsage } from '../../../usage/roll-up.js';
import { cleanUp } from '../../setup/clean-up.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';

const MESSAGES = 1_500;
/** Messages that share transactions. */
const TOGETHER = 16;
/** What a short message takes with its five events, their positions, its usage and the end of its session, in all tables and indexes (docs/performance.md). */
const BYTES_MOST = 3_072;
/** Rows that are deleted all the time are left out: their room is used again. */
const SIZE = `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN ('running_messages', 'event_batches')`;
/** What autovacuum does once a fiftieth of the rows is dead. */
const VACUUM = `VACUUM messages, dispatches, event_groups, event_positions, sessions, idempotency_keys, running_messages, usage_sessions, usage_hours,
  usage_days, event_batches, event_cursors`;

test('a short message with its five events takes a bounded number of bytes', async () => {
  const database = await freshDatabase();
  const tenantId = await insertTenant(database);
  const mesh_id = newId('mesh');
  await insertAgent(database, { tenant_id: tenantId, instance_id: 'agent-1', mesh_id, connection_epoch: 1 });
  const caller = { ...callerOf(tenantId), credential_id: newId('cred'), sub: newId('cred') };
  const db = database.db();
  const core = messageCore(db);
  const dispatches = createDispatches(core);
  const expiry = createSessionExpiry(sessionDeps(core));
  expiry.start();
  cleanUp(() => expiry.stop());
  const parts = [{ kind: 'text' as const, text: 'Which of our invoices from last week are still unpaid?' }];

  const send = async () => {
    const message = { kind: 'message' as const, role: 'user' as const, messageId: crypto.randomUUID(), parts };
    const params = { message, metadata: { agent_type: 'worker' } };
    const draft = { ...draftOf(caller, params, { method: 'message/send' }), idle_timeout_seconds: 0 };
    const offer = { dispatch_id: newId('dsp'), mesh_id, reaches_nodes: false };
    const options = { counting: UNCOUNTED, offer, idempotencyHours: 1 };
    const { message_id, session_id } = await runAcceptTransaction(db, draft, options);
    const ref = { tenant_id: tenantId, message_id, session_id, dispatch_id: offer.dispatch_id };
    const artifacts = [{ artifactId: crypto.randomUUID(), parts }];
    const dispatch = { ...ref, produced: { artifacts: [], usage: null } };
    expect(await dispatches.end(dispatch, { state: 'completed', artifacts }, 1)).not.toBeNull();
  };
  /** What the platform does in the background: positions, usage, the ends of sessions. */
  const followUp = async () => {
    await positionEvents(db);
    await rollUpUsage(db);
    expiry.wake();
    const active = "SELECT 1 FROM sessions WHERE status = 'active' LIMIT 1";
    await until(async () => (await database.query(active)).length === 0, { what: 'the end of the sessions' });
    await database.query(VACUUM);
  };
  const sendAll = async (count: number) => {
    for (let sent = 0; sent < count; sent += TOGETHER) {
      await Promise.all(Array.from({ length: TOGETHER }, send));
      if (sent % (TOGETHER * 2) === 0) await followUp();
    }
    await followUp();
    await followUp(); // the events of the last ends of sessions
    const [row] = await database.query<{ bytes: number; messages: number }>(
      `SELECT (${SIZE}) AS bytes, (SELECT count(*)::int FROM messages) AS messages`,
    );
    return row ?? { bytes: 0, messages: 0 };
  };

  const before = await sendAll(MESSAGES / 3);
  const after = await sendAll(MESSAGES);
  expect(await database.value('SELECT count(*)::int FROM events')).toBe(6 * after.messages); // with the end of the session
  const bytes = (after.bytes - before.bytes) / (after.messages - before.messages);
  expect(bytes).toBeLessThanOrEqual(BYTES_MOST);
});
