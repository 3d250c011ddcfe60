import { expect, test } from 'vitest';
import { connectionState, dispatchTotals } from '../../../agents/agent-connections.js';
import { countOutcome } from '../../../agents/agent-health.js';
import {
  type AgentConnection,
  AgentConnectionResponse,
  AgentRegisterResponse,
  AgentsGetResponse,
  ConnectionStatsResponse,
} from '../../../contracts/api/agents.js';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { newId } from '../../../runtime/ids.js';
import { setSocket } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();

let count = 0;
const fresh = (prefix = 'agent') => `${prefix}-${++count}`;
const register = (body: object) => api.client.ok('/agents/register', body, AgentRegisterResponse);
const hosted = { public_url: 'http://127.0.0.1:1/', agent_card: { name: 'x' } };
const openSocket = (instance_id: string) => setSocket(api, instance_id);
const connection = async (instance_id: string): Promise<AgentConnection> =>
  (await api.client.ok('/agents/get_connection', { instance_id }, AgentConnectionResponse.strict())).connection;

interface Past {
  state: string;
  error?: string;
  sent?: boolean;
  minutesAgo: number;
  tookMs?: number;
}

/** A dispatch that an instance had, as it is on the record. @returns the id of the dispatch, and of its message */
async function dispatched(instance_id: string, past: Past): Promise<[dispatchId: string, messageId: string]> {
  const { state, error = null, sent = true, minutesAgo, tookMs = 0 } = past;
  const [dispatch_id, message_id] = [newId('dsp'), newId('msg')];
  await api.database.query(
    `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt,
       state, error_code, created_at, sent_at, ended_at)
     SELECT $1, $2, $3, $4, 'x', 'hosted', 0, 1, $5, $6, at, CASE WHEN $7 THEN at END,
            CASE WHEN $5 <> 'sent' THEN at + $9 * interval '1 ms' END FROM (SELECT now() - $8 * interval '1 minute' AS at) moment`,
    [api.tenantId, dispatch_id, message_id, instance_id, state, error, sent, minutesAgo, tookMs],
  );
  if (state === 'sent')
    await api.database.query(
      `INSERT INTO running_messages (tenant_id, message_id, session_id, state, instance_id, current_dispatch_id, holds_slot)
       VALUES ($1, $2, 'ses_1', 'working', $3, $4, true)`,
      [api.tenantId, message_id, instance_id, dispatch_id],
    );
  return [dispatch_id, message_id];
}

test.each([
  ['connected', 'offline', 0, 'offline'],
  ['connected', 'available', 0, 'online'],
  ['connected', 'busy', 0, 'online'],
  ['connected', 'draining', 0, 'online'],
  ['connected', 'available', 1, 'degraded'],
  ['connected', 'unhealthy', 0, 'degraded'],
  ['hosted', 'unknown', 0, 'unknown'],
  ['hosted', 'unknown', 1, 'degraded'],
  ['hosted', 'available', 0, 'healthy'],
  ['hosted', 'busy', 0, 'healthy'],
  ['hosted', 'draining', 0, 'healthy'],
  ['hosted', 'available', 2, 'degraded'],
  ['hosted', 'unhealthy', 3, 'degraded'],
  ['hosted', 'offline', 3, 'offline'],
] as const)('%s, %s, %i failures in a row: %s', (deployment_mode, status, consecutive_failures, expected) => {
  const state = connectionState({ deployment_mode, status, consecutive_failures });
  expect([state.connection_status, typeof state.degraded_reason]).toEqual([
    ...[expected, expected === 'degraded' ? 'string' : 'undefined'],
  ]);
});

test('a connected agent is offline without a socket, then online', async () => {
  const instance_id = fresh();
  await register({ instance_id, agent_type: 'painter' });
  expect(await connection(instance_id)).toEqual({
    ...{ transport: 'ws', connection_status: 'offline', owner_mesh_id: null, connected_since: null, status: 'offline' },
    ...{ last_dispatch_at: null, dispatches_succeeded: 0, dispatches_failed: 0, last_dispatch_error: null },
    latency_ms: { p50: null, p95: null, count: 0, window_seconds: 3600 },
    last_seen: expect.any(String),
  });
  await openSocket(instance_id);
  const owner = { owner_mesh_id: 'mesh_1', connected_since: expect.any(String) };
  expect(await connection(instance_id)).toMatchObject({ connection_status: 'online', status: 'available', ...owner });
  await api.client.post('/agents/deregister', { instance_id });
  expect(await connection(instance_id)).toMatchObject({ connection_status: 'offline', status: 'offline' });
});

test('dispatches are counted, old ones once, and those that are over later as well', async () => {
  const instance_id = fresh();
  await register({ instance_id, agent_type: 'painter', ...hosted });
  for (const past of [
    { state: 'completed', minutesAgo: 300 },
    { state: 'failed', error: 'HANDLER_ERROR', minutesAgo: 200 },
    { state: 'sent', minutesAgo: 100 },
    { state: 'completed', minutesAgo: 50 },
    { state: 'input_required', minutesAgo: 2 },
    { state: 'released', error: 'CONNECT_FAILED', minutesAgo: 1.9 },
    { state: 'released', error: 'NOT_CONNECTED', sent: false, minutesAgo: 1.8 },
    { state: 'canceled', error: 'CANCELED', minutesAgo: 1 },
    { state: 'released', error: 'OWNER_LOST', sent: false, minutesAgo: 0.5 },
  ])
    await dispatched(instance_id, past);
  const expected = { dispatches_succeeded: 3, dispatches_failed: 2, last_dispatch_error: 'CONNECT_FAILED' };
  const first = await connection(instance_id);
  expect(first).toMatchObject({ transport: 'callback', connection_status: 'unknown', ...expected });
  expect(Date.parse(first.last_dispatch_at ?? '')).toBeGreaterThan(Date.now() - 90_000);
  expect(await connection(instance_id)).toEqual(first);

  await api.database.query(
    `UPDATE dispatches SET state = 'failed', error_code = 'AGENT_DISCONNECTED', ended_at = now() WHERE instance_id = $1 AND state = 'sent'`,
    [instance_id],
  );
  await dispatched(instance_id, { state: 'completed', minutesAgo: 0 });
  const later = { dispatches_succeeded: 4, dispatches_failed: 3, last_dispatch_error: 'AGENT_DISCONNECTED' };
  expect(await connection(instance_id)).toMatchObject(later);
  expect(await Promise.all(Array.from({ length: 8 }, () => connection(instance_id)))).toHaveLength(8);
  expect(await connection(instance_id)).toMatchObject(later);
});

/** One that was sent some minutes ago and took so long; its tool call waited for a human for a part of that. */
async function took(instance_id: string, ms: number, { state = 'completed', minutesAgo = 5, waitedMs = 0 } = {}) {
  const [dispatch_id, message_id] = await dispatched(instance_id, { state, minutesAgo, tookMs: ms });
  if (waitedMs === 0) return;
  const request_id = newId('req');
  await api.database.query(
    `INSERT INTO input_requests (tenant_id, request_id, message_id, session_id, kind, source, stage, title, prompt, digest, state,
       requested_at, expires_at, ended_at)
     VALUES ($1, $2, $3, 'ses_1', 'approval', 'policy', 'tool', 't', 'p', 'd', 'resolved', now(), now(), now() + $4 * interval '1 ms')`,
    [api.tenantId, request_id, message_id, waitedMs],
  );
  await api.database.query(
    `INSERT INTO tool_grants (tenant_id, request_id, message_id, dispatch_id, deadline_left_ms, asked_digest, target, node_id, call)
     VALUES ($1, $2, $3, $4, 0, 'd', '{}', 'n', '{}')`,
    [api.tenantId, request_id, message_id, dispatch_id],
  );
}

test('the latency is that of the last hour, and waits for people are left out', async () => {
  const instance_id = fresh();
  await register({ instance_id, agent_type: 'painter', ...hosted });
  for (let tenth = 1; tenth <= 18; tenth += 1) await took(instance_id, tenth * 10);
  await took(instance_id, 190, { state: 'failed' });
  await took(instance_id, 60_200, { state: 'input_required', waitedMs: 60_000 });
  await took(instance_id, 9_000, { minutesAgo: 61 });
  await took(instance_id, 9_000, { state: 'canceled' });
  await took(instance_id, 9_000, { state: 'lost' });
  await took(fresh(), 9_000);
  const { latency_ms } = await connection(instance_id);
  expect(latency_ms).toEqual({ p50: 100, p95: 190, count: 20, window_seconds: 3600 });
});

/** A message that failed on an instance, as it is on the record. */
async function failed(instance_id: string, code: string, minutesAgo: number): Promise<void> {
  await api.database.query(
    `INSERT INTO messages (deadline_ms, tenant_id, message_id, session_id, credential_id, client_message_id, method, parts, state,
       unsuccessful_state, instance_id, error_code, completed_at)
     SELECT 1, $1, id_bound('msg', at) || right($2, 23), 'ses_1', 'cred_1', 'c', 'message/send', '[]', 'failed', 'failed', $3, $4, at
       FROM (SELECT now() - $5 * interval '1 minute' AS at) moment`,
    [api.tenantId, newId('msg'), instance_id, code, minutesAgo],
  );
}

test('an instance that fails while others of its type succeed is degraded', async () => {
  const agent_type = fresh('type');
  const [bad, good] = [fresh(), fresh()];
  for (const instance_id of [bad, good]) {
    await register({ instance_id, agent_type });
    await openSocket(instance_id);
  }
  for (let failed = 0; failed < 5; failed += 1)
    await countOutcome(api.db, { tenant_id: api.tenantId, instance_id: bad }, 'HANDLER_ERROR');
  expect(await connection(bad)).toMatchObject({
    connection_status: 'degraded',
    degraded_reason: '5 of its last 10 messages failed (HANDLER_ERROR), while other agents of its type succeed.',
  });
  expect((await connection(good)).connection_status).toBe('online');
  const failing = async () =>
    (await api.client.ok('/agents/get', { agent_type, failing: true }, AgentsGetResponse)).agents;
  expect(await failing()).toMatchObject([{ instance_id: bad, last_error: 'HANDLER_ERROR' }]);
  await api.client.post('/agents/deregister', { instance_id: good });
  expect((await connection(bad)).connection_status).toBe('online');
  const { agents } = await api.client.ok('/agents/get', { agent_type, status: 'available' }, AgentsGetResponse);
  expect(agents).toMatchObject([{ last_error: 'HANDLER_ERROR', failing_since: expect.any(String) }]);
});

test('the list says what each instance has to do, and how it fared in the last hour', async () => {
  const agent_type = fresh('type');
  const [idle, busy] = [fresh(), fresh()];
  for (const instance_id of [busy, idle]) await register({ instance_id, agent_type, ...hosted });
  for (const past of [
    { state: 'failed', minutesAgo: 70, tookMs: 90 },
    { state: 'failed', minutesAgo: 50, tookMs: 30 },
    { state: 'lost', minutesAgo: 40 },
    { state: 'completed', minutesAgo: 10, tookMs: 20 },
    { state: 'completed', minutesAgo: 0, tookMs: 10 },
    { state: 'sent', minutesAgo: 0 },
  ])
    await dispatched(busy, past);
  for (const [code, minutesAgo] of [
    ['HANDLER_ERROR', 70],
    ['HANDLER_ERROR', 50],
    ['DEADLINE_EXCEEDED', 40],
    ['GUARD_DENIED', 30],
  ] as const)
    await failed(busy, code, minutesAgo);
  await api.database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, queue) SELECT $1, 'msg_' || n, 'ses_1', 'submitted', $2
       FROM generate_series(1, 3) AS n`,
    [api.tenantId, `${busy}//`],
  );
  const { agents } = await api.client.ok('/agents/get', { agent_type }, AgentsGetResponse.strict());
  const nothing = { queue_length: 0, in_flight: 0, sent_per_minute: 0, failed_last_hour: 0 };
  expect(agents).toEqual([
    expect.objectContaining({ instance_id: idle, ...nothing, latency_ms: { p50: null, p95: null } }),
    expect.objectContaining({
      ...{ instance_id: busy, queue_length: 3, in_flight: 1, sent_per_minute: 2, failed_last_hour: 2 },
      ...{ latency_ms: { p50: 20, p95: 30 }, last_error: 'DEADLINE_EXCEEDED' },
    }),
  ]);
});

test('more dispatches than one step sums up are counted all the same', async () => {
  const instance_id = fresh();
  await register({ instance_id, agent_type: 'painter', ...hosted });
  for (let index = 0; index < 9; index += 1)
    await dispatched(instance_id, { state: 'completed', minutesAgo: 100 - index });
  const totals = await dispatchTotals(api.db, api.tenantId, instance_id, 2);
  expect(totals.dispatches_succeeded).toBe(9);
  const summed = 'SELECT succeeded FROM dispatch_totals WHERE instance_id = $1';
  expect(await api.database.query(summed, [instance_id])).toEqual([{ succeeded: 9 }]);
});

test('the statistics count agents by mode, status and transport, as the list shows them', async () => {
  const agent_type = fresh('type');
  const names = [fresh(), fresh(), fresh()];
  for (const instance_id of names) await register({ instance_id, agent_type, max_concurrent_sessions: 1 });
  await register({ instance_id: fresh(), agent_type, ...hosted });
  await openSocket(names[0] ?? '');
  await openSocket(names[1] ?? '');
  await api.client.ok('/sessions/init', { instance_id: names[1], reserve: true }, SessionInitResponse);
  const read = async (body: object) =>
    (await api.client.ok('/agents/get_connection_stats', body, ConnectionStatsResponse.strict())).stats;
  expect(await read({ agent_type })).toEqual({
    total: 4,
    by_deployment_mode: { connected: 3, hosted: 1 },
    by_status: { available: 1, busy: 1, draining: 0, unhealthy: 0, offline: 1, unknown: 1 },
    by_transport: { ws: 3, callback: 1 },
  });
  expect((await read({})).total).toBeGreaterThan(4);
  expect((await read({ agent_type: 'nobody' })).total).toBe(0);
  const other = await api.clientOf(await api.otherTenant(), ['full']);
  expect((await other.ok('/agents/get_connection_stats', {}, ConnectionStatsResponse)).stats.total).toBe(0);
});
