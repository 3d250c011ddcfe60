import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../../contracts/auth.js';
import { MessagesGetResponse } from '../../contracts/messages.js';
import { GetEventsResponse } from '../../contracts/telemetry.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { createGateway } from '../../messages/gateway.js';
import { nextStep } from '../../messages/supervise/next-step.js';
import { newId } from '../../runtime/ids.js';
import type { ApiClient } from '../setup/api-client.js';
import { freshDatabase } from '../setup/database.js';
import { type ServedApi, serveApi } from './served-api.js';

let api: ServedApi;
let client: ApiClient;
let tenant_id: string;
let ids: Record<'painted' | 'failed' | 'waiting', string>;
let dispatch_id: string;
let before: string;

beforeAll(async () => {
  api = await serveApi(await freshDatabase());
  tenant_id = await api.otherTenant();
  client = await api.clientOf(tenant_id, ['full']);
  for (const type of ['painter', 'plumber']) {
    await api.database.query(
      `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions)
       VALUES ($1, $2, $3, 'hosted', 'http://192.0.2.1/', 'available', 0)`,
      [tenant_id, `${type}-1`, type],
    );
  }
  await api.database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions)
     VALUES ($1, 'nobody-1', 'nobody', 'connected', 'offline', 0)`,
    [tenant_id],
  );
  before = new Date(Date.now() - 60_000).toISOString();
  const painted = await runStep('painter', null);
  const failed = await runStep('plumber', { code: 'HANDLER_ERROR', message: 'no luck' });
  dispatch_id = failed.dispatch_id;
  const waiting = await accept('nobody');
  ids = { painted: painted.message_id, failed: failed.message_id, waiting };
});
afterAll(() => api.close());

async function accept(agent_type: string): Promise<string> {
  const caller: Caller = { tenant_id, credential_id: 'c', sub: 'c', agent_type: 'x', scopes: ['full'], iat: 0, exp: 0 };
  const message = {
    kind: 'message' as const,
    messageId: newId('msg'),
    role: 'user' as const,
    parts: [{ kind: 'text' as const, text: 'hello' }],
  };
  const params = { message, metadata: { agent_type } };
  return (await createGateway(api.core).accept(caller, params, { method: 'message/send' })).message_id;
}

/** Sends a message, which its agent completes or fails. */
async function runStep(agentType: string, error: { code: string; message: string } | null) {
  const message_id = await accept(agentType);
  const step = await nextStep(api.core, { tenant_id, message_id });
  if (step?.kind !== 'dispatch') throw new Error(`not dispatched: ${step?.kind}`);
  const ref = { tenant_id, message_id, dispatch_id: step.dispatch_id };
  const dispatches = createDispatches(api.core);
  const sent = await dispatches.markSent(ref, { mesh_id: 'mesh_1', epoch: 0 });
  if (!sent) throw new Error('not sent');
  const state = error ? 'failed' : 'completed';
  await dispatches.end(sent, { state, artifacts: [], ...(error && { error }) }, 0);
  return ref;
}

const listed = async (filter: object) => {
  const { count, messages } = await client.ok('/messages/get', filter, MessagesGetResponse.strict());
  expect(count).toBe(messages.length);
  return messages.map(({ message_id }) => message_id);
};
const eventsOf = async (filter: object) => {
  const { count, events } = await client.ok('/telemetry/get_events', filter, GetEventsResponse.strict());
  expect(count).toBe(events.length);
  return events.map(({ type }) => type).reverse();
};

test('messages are filtered by agent, by error and by time', async () => {
  const { painted, failed, waiting } = ids;
  expect(await listed({})).toEqual([waiting, failed, painted]);
  expect(await listed({ agent_type: 'painter' })).toEqual([painted]);
  expect(await listed({ agent_type: 'nobody' })).toEqual([waiting]);
  expect(await listed({ instance_id: 'plumber-1' })).toEqual([failed]);
  expect(await listed({ error_code: 'HANDLER_ERROR' })).toEqual([failed]);
  expect(await listed({ error_code: 'HANDLER_ERROR', instance_id: 'painter-1' })).toEqual([]);
  expect(await listed({ since: before })).toEqual([waiting, failed, painted]);
  expect(await listed({ until: before })).toEqual([]);
  const [middle] = await api.database.query<{ created_at: Date }>(
    'SELECT created_at FROM messages WHERE message_id = $1',
    [failed],
  );
  const at = (ms: number) => new Date((middle?.created_at.getTime() ?? 0) + ms).toISOString();
  expect(await listed({ since: at(0), until: at(1) })).toEqual([failed]);
});

test('a filter that is none is refused, and another tenant sees nothing', async () => {
  for (const bad of [{ since: 'yesterday' }, { agent_type: '' }, { error_code: '' }, { instance: 'x' }]) {
    expect(await client.failure('/messages/get', bad)).toBe('400 BAD_REQUEST');
  }
  const other = await api.clientOf(await api.otherTenant(), ['full']);
  for (const filter of [{ error_code: 'HANDLER_ERROR' }, { instance_id: 'plumber-1' }, { agent_type: 'plumber' }]) {
    expect((await other.ok('/messages/get', filter, MessagesGetResponse)).count).toBe(0);
  }
  for (const filter of [{ message_id: ids.failed }, { instance_id: 'plumber-1' }]) {
    expect((await other.ok('/telemetry/get_events', filter, GetEventsResponse)).count).toBe(0);
  }
});

test('events are filtered by message, with those of its dispatches, and by instance', async () => {
  const all = ['message.received', 'dispatch.sent', 'dispatch.failed', 'message.error'];
  expect(await eventsOf({ message_id: ids.failed })).toEqual(all);
  expect(await eventsOf({ message_id: ids.failed, category: 'message' })).toEqual([
    'message.received',
    'message.error',
  ]);
  expect(await eventsOf({ message_id: 'msg_unknown' })).toEqual([]);
  expect(await eventsOf({ instance_id: 'plumber-1' })).toEqual(['dispatch.sent', 'dispatch.failed']);
  expect(await eventsOf({ instance_id: 'plumber-1', message_id: ids.painted })).toEqual([]);
  expect(dispatch_id).toMatch(/^dsp_/);
});

test('messages of an instance or an error, and events of a message, are found by an index, among many messages that are not', async () => {
  await api.database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, credential_id, client_message_id, state, method, parts, trace_id,
       deadline_ms, agent_type, instance_id)
     SELECT $1, 'msg_00' || n, 'ses_0', 'c', 'm' || n, 'completed', 'message/send', '[]', 't', 1, 'other', 'other-1'
       FROM generate_series(1, 20000) n`,
    [tenant_id],
  );
  await api.database.query(
    `INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, payload)
     SELECT $1, 'evt_00' || n, 'dispatch.sent', 'dispatch', 'platform', 'info', 'ses_0', '{"instance_id": "other-1"}'
       FROM generate_series(1, 20000) n`,
    [tenant_id],
  );
  await api.database.query('ANALYZE messages, events');
  await api.database.query('SELECT pg_stat_reset()');
  expect(await listed({ instance_id: 'plumber-1' })).toEqual([ids.failed]);
  expect(await listed({ error_code: 'HANDLER_ERROR' })).toEqual([ids.failed]);
  expect(await eventsOf({ message_id: ids.failed })).toHaveLength(4);
  const read = async () => {
    const rows = await api.database.query<{ rows: string }>(
      `SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) AS rows FROM pg_stat_user_tables
        WHERE relname IN ('messages', 'events')`,
    );
    return Number(rows[0]?.rows ?? 0);
  };
  expect(await read()).toBeLessThan(1_000);
});
