import type { IncomingMessage, ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import { statusAfterHeartbeat } from '../../../agents/agent-health.js';
import {
  AgentGetByIdResponse,
  type AgentInstance,
  AgentRegisterResponse,
  AgentsGetResponse,
} from '../../../contracts/api/agents.js';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../../contracts/api/telemetry.js';
import { httpServer, type LoopbackServer } from '../../runtime/loopback-server.js';
import { setSocket } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();

let count = 0;
const fresh = (prefix = 'agent') => `${prefix}-${++count}`;
const register = (body: object, client = api.client) =>
  client.ok('/agents/register', body, AgentRegisterResponse.strict());
/** Registers an instance. */
const registered = async (fields: object = {}): Promise<string> =>
  (await register({ instance_id: fresh(), agent_type: 'painter', ...fields })).instance_id;
/** Registers an instance, which opens its socket. */
async function connected(fields: object = {}): Promise<string> {
  const instance_id = await registered(fields);
  await openSocket(instance_id);
  return instance_id;
}
const read = async (instance_id: string): Promise<AgentInstance> =>
  (await api.client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse.strict())).agent;
const openSocket = (instance_id: string) => setSocket(api, instance_id);

/** Events about one instance, oldest first, as `type` and payload. */
async function eventsOf(instance_id: string) {
  const body = { category: 'agent', instance_id, page_size: 100 };
  const { events } = await api.client.ok('/telemetry/get_events', body, GetEventsResponse.strict());
  return events.map(({ type, event }) => [type, event]).reverse();
}

/** A client whose token speaks for an agent type. */
const agentClient = async (agentType: string) => api.clientWith(await api.tokenOf(['read'], agentType));

describe('connected agents', () => {
  test('registering gives everything that is needed to connect', async () => {
    const instance_id = fresh();
    const answer = await register({ instance_id, agent_type: 'painter', agent_version: '1.2', context: { zone: 'a' } });
    expect(answer).toEqual({
      ok: true,
      tenant_id: api.tenantId,
      instance_id,
      deployment_mode: 'connected',
      connect_url: `wss://mesh.example:8443/agents/connect?instance_id=${instance_id}`,
      jwks_url: `${api.baseUrl}/.well-known/jwks.json`,
      dispatch_auth: { type: 'bearer_jwt' },
      agent: {
        instance_id,
        agent_type: 'painter',
        public_url: null,
        deployment_mode: 'connected',
        tenant_id: api.tenantId,
        mesh_id: null,
        status: 'offline',
        current_sessions: 0,
        max_concurrent_sessions: 10,
        max_concurrent_tasks: 0,
        consecutive_failures: 0,
        last_seen: expect.any(String),
        registered_at: expect.any(String),
        agent_version: '1.2',
        provider_organization: null,
        provider_url: null,
        agent_card: {},
        context: { zone: 'a' },
      },
    });
    const payload = { agent_type: 'painter', instance_id, tenant_id: api.tenantId, connect_mode: 'connected' };
    expect(await eventsOf(instance_id)).toEqual([['agent.registered', payload]]);
  });

  test('an instance without a name is given one', async () => {
    expect((await register({ agent_type: 'painter' })).instance_id).toMatch(/^inst_[0-9a-f-]{36}$/);
  });

  test('registering again replaces what was said, keeps a live socket and tells of a new capacity', async () => {
    const instance_id = await connected({ agent_version: '1' });
    const { agent } = await register({ instance_id, agent_type: 'painter', max_concurrent_sessions: 3 });
    const kept = { status: 'available', mesh_id: 'mesh_1' };
    expect(agent).toMatchObject({ ...kept, max_concurrent_sessions: 3, agent_version: null });
    expect((await eventsOf(instance_id)).at(-1)).toEqual([
      'agent.capacity_changed',
      { agent_type: 'painter', instance_id, current_sessions: 0, max_concurrent_sessions: 3 },
    ]);
  });

  test.each([
    ['skills', Array.from({ length: 2 }, (_, id) => ({ id: `${id}`, description: 'x'.repeat(33_000) }))],
    ['tools', [{ name: 'paint', input_schema: { hint: 'x'.repeat(66_000) } }]],
  ])('%s of more than 64 KiB: 400', async (name, value) => {
    const answer = await api.client.post('/agents/register', { agent_type: 'painter', [name]: value });
    expect(answer).toMatchObject({ status: 400, body: { error: `${name}: must be at most 65536 bytes` } });
    await register({ agent_type: 'painter', [name]: value.slice(1) });
  });

  test('two first registrations of one name at once make one agent', async () => {
    const instance_id = fresh();
    const one = { instance_id, agent_type: 'painter' };
    const answers = Array.from({ length: 8 }, (_, nth) => register({ ...one, agent_version: `${nth}` }));
    expect(await Promise.all(answers)).toHaveLength(8);
  });

  test('another mode for the same instance: 409', async () => {
    const instance_id = await registered();
    const body = { instance_id, agent_type: 'painter', public_url: 'http://127.0.0.1:1/', agent_card: { name: 'x' } };
    expect(await api.client.failure('/agents/register', body)).toBe('409 DEPLOYMENT_MODE_MISMATCH');
  });
});

describe('who may act for an agent', () => {
  // That other types, other tenants and lower scopes reach nothing of it is in the table of test/api/permissions.test.ts.
  test('a token for the type registers, beats and deregisters it; another type does not even hear that it is gone', async () => {
    const [painter, plumber] = [await agentClient('painter'), await agentClient('plumber')];
    const instance_id = fresh();
    await register({ instance_id, agent_type: 'painter' }, painter);
    expect(await plumber.failure('/agents/register', { instance_id, agent_type: 'plumber' })).toBe('403 forbidden');
    expect((await painter.post('/agents/heartbeat', { instance_id })).body).toEqual({ ok: true });
    expect((await painter.post('/agents/deregister', { instance_id })).body).toEqual({ ok: true, instance_id });
    expect(await painter.failure('/agents/heartbeat', { instance_id })).toBe('404 DEREGISTERED');
    expect(await plumber.failure('/agents/heartbeat', { instance_id })).toBe('404 NOT_FOUND');
  });

  test('nothing is of the type credential, and a token without an agent speaks for none', async () => {
    const reader = await api.clientOf(api.tenantId, ['read']);
    for (const client of [reader, api.client])
      expect(await client.failure('/agents/register', { agent_type: 'credential' })).toBe('400 BAD_REQUEST');
    const instance_id = await registered();
    await api.database.query("UPDATE agents SET agent_type = 'credential' WHERE instance_id = $1", [instance_id]);
    for (const path of ['/agents/heartbeat', '/agents/deregister'])
      expect(await reader.failure(path, { instance_id })).toBe('403 forbidden');
    const credential = { name: 'x', scopes: ['read'], agent_types: ['painter', 'credential'] };
    expect(await api.client.failure('/credentials/create', credential)).toBe('400 BAD_REQUEST');
  });

  test('the name of an agent of another tenant is free', async () => {
    const instance_id = await registered();
    const other = await api.clientOf(await api.otherTenant(), ['full']);
    expect((await other.ok('/agents/get', {}, AgentsGetResponse)).count).toBe(0);
    await register({ instance_id, agent_type: 'plumber' }, other);
    expect((await read(instance_id)).agent_type).toBe('painter');
  });
});

describe('heartbeats', () => {
  test.each([
    ['available', 'connected', null, {}, 'offline'],
    ['offline', 'connected', null, { status: 'available' }, 'offline'],
    ['available', 'connected', 'm', {}, 'available'],
    ['unhealthy', 'connected', 'm', {}, 'available'],
    ['unknown', 'hosted', null, {}, 'available'],
    ['draining', 'hosted', null, {}, 'draining'],
    ['draining', 'hosted', null, { status: 'available' }, 'available'],
    ['available', 'hosted', null, { status: 'busy' }, 'busy'],
    ['busy', 'connected', 'm', {}, 'busy'],
    ['busy', 'connected', 'm', { status: 'available' }, 'available'],
    ['busy', 'connected', 'm', { consecutive_failures: 3 }, 'unhealthy'],
    ['available', 'hosted', null, { status: 'draining' }, 'draining'],
    ['available', 'hosted', null, { status: 'unhealthy' }, 'unhealthy'],
    ['available', 'hosted', null, { consecutive_failures: 3 }, 'unhealthy'],
    ['unhealthy', 'hosted', null, { consecutive_failures: 2 }, 'available'],
  ] as const)('%s %s with socket %s and %o reads %s', (status, deployment_mode, mesh_id, beat, after) => {
    expect(statusAfterHeartbeat({ status, deployment_mode, mesh_id, consecutive_failures: 0 }, beat)).toBe(after);
  });

  test('failures that were counted keep an agent unhealthy until it says that it is available', () => {
    const agent = { status: 'unhealthy', deployment_mode: 'hosted', mesh_id: null, consecutive_failures: 3 } as const;
    expect(statusAfterHeartbeat(agent, {})).toBe('unhealthy');
    expect(statusAfterHeartbeat(agent, { status: 'available' })).toBe('available');
  });

  test('a heartbeat, plain or wrapped, changes the row and tells of it', async () => {
    const instance_id = await connected();
    const sessions = { current_sessions: 7, max_concurrent_sessions: 2 };
    await api.client.post('/agents/heartbeat', { instance_id, status: 'draining', ...sessions });
    const payload = { instance_id, status: 'available', consecutive_failures: 1 };
    const wrapped = { v: 1, id: 'x', ts: new Date().toISOString(), payload };
    expect((await api.client.post('/agents/heartbeat', wrapped)).body).toEqual({ ok: true });
    expect(await read(instance_id)).toMatchObject({ status: 'busy', ...sessions, consecutive_failures: 1 });
    const agent = { agent_type: 'painter', instance_id };
    expect((await eventsOf(instance_id)).slice(1)).toEqual([
      ['agent.health_changed', { ...agent, status: 'draining', previous_status: 'available' }],
      ['agent.capacity_changed', { ...agent, ...sessions }],
      ['agent.health_changed', { ...agent, status: 'available', previous_status: 'draining' }],
    ]);
  });
});

test('a drain holds whatever the agent reports, until its end', async () => {
  const instance_id = await connected({ max_concurrent_tasks: 3 });
  const answer = async (path: string) => (await api.client.post(path, { instance_id })).body;
  expect(await answer('/agents/drain')).toEqual({ ok: true, instance_id, status: 'draining' });
  await answer('/agents/drain');
  await api.client.post('/agents/heartbeat', { instance_id, status: 'busy' });
  await api.client.post('/agents/heartbeat', { instance_id, status: 'available', max_concurrent_tasks: 4 });
  expect(await read(instance_id)).toMatchObject({ status: 'draining', max_concurrent_tasks: 4 });
  await register({ instance_id, agent_type: 'painter' });
  await openSocket(instance_id);
  expect(await read(instance_id)).toMatchObject({ status: 'draining', max_concurrent_tasks: 0 });
  expect(await api.client.failure('/sessions/init', { instance_id })).toBe('503 SERVICE_UNAVAILABLE');
  expect(await answer('/agents/undrain')).toEqual({ ok: true, instance_id, status: 'available' });
  const agent = { agent_type: 'painter', instance_id };
  const changes = (await eventsOf(instance_id)).filter(([type]) => type === 'agent.health_changed');
  expect(changes).toEqual([
    ['agent.health_changed', { ...agent, status: 'draining', previous_status: 'available' }],
    ['agent.health_changed', { ...agent, status: 'available', previous_status: 'draining' }],
  ]);
});

test.each(['/agents/drain', '/agents/undrain'])('%s of an instance that is gone: 404', async (path) => {
  const instance_id = await registered();
  await api.client.post('/agents/deregister', { instance_id });
  expect(await api.client.failure(path, { instance_id })).toBe('404 DEREGISTERED');
  expect(await api.client.failure(path, { instance_id: 'nobody' })).toBe('404 NOT_FOUND');
});

test('the larger of the reported and the counted sessions shows, and decides whether there is room', async () => {
  const instance_id = await connected({ max_concurrent_sessions: 2 });
  const report = (body: object) => api.client.post('/agents/heartbeat', { instance_id, ...body });
  const init = () => api.client.failure('/sessions/init', { instance_id, reserve: true });
  await report({ current_sessions: 1 });
  expect(await read(instance_id)).toMatchObject({ status: 'available', current_sessions: 1 });
  expect(await init()).toBe('200');
  expect(await read(instance_id)).toMatchObject({ status: 'available', current_sessions: 1 });
  await report({ current_sessions: 2 });
  expect(await read(instance_id)).toMatchObject({ status: 'busy', current_sessions: 2 });
  expect(await init()).toBe('409 AGENT_AT_CAPACITY');
  await report({ current_sessions: 0 });
  expect(await read(instance_id)).toMatchObject({ status: 'available', current_sessions: 1 });
  expect(await init()).toBe('200');
});

test('a reported busy holds until the next report of a status', async () => {
  const instance_id = await connected({ max_concurrent_sessions: 0 });
  await api.client.post('/agents/heartbeat', { instance_id, status: 'busy' });
  await api.client.post('/agents/heartbeat', { instance_id });
  expect((await read(instance_id)).status).toBe('busy');
  expect(await api.client.failure('/sessions/init', { instance_id, reserve: true })).toBe('409 AGENT_AT_CAPACITY');
  await api.client.post('/agents/heartbeat', { instance_id, status: 'available' });
  expect(await api.client.failure('/sessions/init', { instance_id, reserve: true })).toBe('200');
});

test('a full agent reads busy, and is found by that', async () => {
  const [instance_id, agent_type] = [fresh(), fresh('type')];
  await register({ instance_id, agent_type, max_concurrent_sessions: 1 });
  await openSocket(instance_id);
  const { session_id } = await api.client.ok(
    '/sessions/init',
    { instance_id, reserve: true },
    SessionInitResponse.strict(),
  );
  expect(await read(instance_id)).toMatchObject({ status: 'busy', current_sessions: 1 });
  const of = async (status: string) => {
    const { agents } = await api.client.ok('/agents/get', { agent_type, status }, AgentsGetResponse.strict());
    return agents.map((agent) => agent.instance_id);
  };
  expect([await of('busy'), await of('available')]).toEqual([[instance_id], []]);
  expect(await api.client.failure('/sessions/init', { instance_id, reserve: true })).toBe('409 AGENT_AT_CAPACITY');
  await api.client.post('/sessions/close', { session_id });
  expect([await of('busy'), await of('available')]).toEqual([[], [instance_id]]);
});

test('a list is paged, newest first, and filtered', async () => {
  const agent_type = fresh('type');
  const names = [fresh(), fresh(), fresh()];
  for (const instance_id of names) await register({ instance_id, agent_type });
  const page = await api.client.ok('/agents/get', { agent_type, page: 2, page_size: 2 }, AgentsGetResponse.strict());
  expect(page).toMatchObject({ count: 3, page: 2, page_size: 2, total_pages: 2 });
  expect(page.agents.map((agent) => agent.instance_id)).toEqual([names[0]]);
  const hosted = await api.client.ok('/agents/get', { agent_type, deployment_mode: 'hosted' }, AgentsGetResponse);
  expect(hosted).toMatchObject({ count: 0, total_pages: 0, agents: [] });
});

test('a deregistered agent takes no work, its sessions are unbound, and it can come back', async () => {
  const instance_id = await connected();
  await api.client.ok('/sessions/init', { instance_id, reserve: true }, SessionInitResponse);
  await api.client.post('/agents/deregister', { instance_id, reason: 'moved' });
  expect(await read(instance_id)).toMatchObject({ status: 'offline', current_sessions: 0 });
  expect((await eventsOf(instance_id)).at(-1)).toEqual([
    'agent.deregistered',
    { agent_type: 'painter', instance_id, reason: 'moved' },
  ]);
  expect(await api.client.failure('/agents/heartbeat', { instance_id })).toBe('404 DEREGISTERED');
  expect(await api.client.failure('/sessions/init', { instance_id })).toBe('503 SERVICE_UNAVAILABLE');
  expect((await api.client.post('/agents/deregister', { instance_id })).status).toBe(200);
  expect((await register({ instance_id, agent_type: 'painter' })).agent.status).toBe('offline');
  expect((await api.client.post('/agents/heartbeat', { instance_id })).status).toBe(200);
});

test('an agent that was silent for too long is unknown, until somebody deregisters it', async () => {
  const instance_id = await registered();
  await api.database.query(
    "UPDATE agents SET deregistered_at = now(), deregistration_cause = 'inactivity' WHERE instance_id = $1",
    [instance_id],
  );
  expect(await api.client.failure('/agents/heartbeat', { instance_id })).toBe('404 NOT_FOUND');
  const before = await eventsOf(instance_id);
  await api.client.post('/agents/deregister', { instance_id });
  expect(await api.client.failure('/agents/heartbeat', { instance_id })).toBe('404 DEREGISTERED');
  expect(await eventsOf(instance_id)).toEqual(before);
});

test('an instance that is registered as another type leaves its sessions, and keeps its socket', async () => {
  const instance_id = await connected();
  await api.client.ok('/sessions/init', { instance_id, reserve: true }, SessionInitResponse);
  const { agent } = await register({ instance_id, agent_type: 'plumber' });
  expect(agent).toMatchObject({ agent_type: 'plumber', status: 'available', mesh_id: 'mesh_1', current_sessions: 0 });
  expect((await eventsOf(instance_id)).slice(-2)).toEqual([
    ['agent.deregistered', { agent_type: 'painter', instance_id, reason: 'registered as another type' }],
    ['agent.registered', { agent_type: 'plumber', instance_id, tenant_id: api.tenantId, connect_mode: 'connected' }],
  ]);
});

describe('hosted agents', () => {
  const card = { name: 'Painter', version: '9', provider: { organization: 'Paint', url: 'https://paint.example' } };
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let server: LoopbackServer;
  const url = (path: string) => `${server.url}${path}`;
  beforeEach(async () => {
    server = await httpServer((request, response) => answer(request, response));
  });
  const json = (value: unknown) => (_request: IncomingMessage, response: ServerResponse) => {
    response
      .setHeader('content-type', 'application/json')
      .end(typeof value === 'string' ? value : JSON.stringify(value));
  };

  test('the card is fetched from below the address; the agent is available at once', async () => {
    answer = json(card);
    const { agent, connect_url, deployment_mode } = await register({ agent_type: 'painter', url: url('/a2a/') });
    expect([connect_url, deployment_mode]).toEqual([null, 'hosted']);
    expect(server.requests).toEqual(['GET /a2a/.well-known/agent-card.json']);
    expect(agent).toMatchObject({
      status: 'available',
      public_url: url('/a2a/'),
      agent_card: card,
      agent_version: '9',
      provider_organization: 'Paint',
      provider_url: 'https://paint.example',
    });
  });

  test("the origin's card serves where there is none below the address", async () => {
    answer = (request, response) =>
      request.url?.startsWith('/a2a') ? response.writeHead(404).end() : json(card)(request, response);
    await register({ agent_type: 'painter', public_url: url('/a2a') });
    expect(server.requests).toEqual(['GET /a2a/.well-known/agent-card.json', 'GET /.well-known/agent-card.json']);
  });

  test('a card that is given is not fetched; the agent is unknown until it is heard of', async () => {
    const { agent } = await register({ agent_type: 'painter', public_url: url('/'), agent_card: card });
    expect([agent.status, server.requests]).toEqual(['unknown', []]);
  });

  test.each([
    ['not JSON', 'hello'],
    ['an array', []],
    ['no name', { version: '1' }],
    ['NUL inside', '{"name":"x\\u0000"}'],
    ['__proto__ inside', '{"name":"x","__proto__":{}}'],
    ['more than 64 KiB', { name: 'x'.repeat(65 * 1024) }],
  ])('a card with %s: 502', async (_what, body) => {
    answer = json(body);
    const failure = await api.client.failure('/agents/register', { agent_type: 'painter', public_url: url('/') });
    expect(failure).toBe('502 BAD_GATEWAY');
  });

  test('a card that names the address of another origin is refused with that address', async () => {
    answer = json({ ...card, supportedInterfaces: [{ url: 'http://10.0.0.1/rpc', protocolBinding: 'JSONRPC' }] });
    const { status, body } = await api.client.post('/agents/register', { agent_type: 'painter', url: url('/') });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: expect.stringContaining('http://10.0.0.1/rpc') });
  });

  const CLOSED = 'public_url: the target address is not allowed (10.0.0.1): OUTBOUND_ALLOW_CIDRS';
  test.each([
    ['an address that is not open', 'http://10.0.0.1/', 400, 'BAD_REQUEST', CLOSED],
    ['a URL that cannot be asked', 'file:///etc/passwd', 400, 'BAD_REQUEST', ''],
    ['a port where nobody listens', 'http://127.0.0.1:1/', 502, 'BAD_GATEWAY', ''],
    ['an address without a card', '', 502, 'BAD_GATEWAY', '/.well-known/agent-card.json'],
  ])('%s: %s %i %s, with the remedy', async (_what, address, status, code, text) => {
    answer = (_request, response) => response.writeHead(404).end();
    const asked = { agent_type: 'painter', url: address || url('/a2a') };
    const body = { code, error: expect.stringContaining(text) };
    expect(await api.client.post('/agents/register', asked)).toMatchObject({ status, body });
  });

  test('hosted without an address, or with two: 400', async () => {
    for (const addresses of [{ deployment_mode: 'hosted' }, { url: url('/'), public_url: url('/') }])
      expect(await api.client.failure('/agents/register', { agent_type: 'p', ...addresses })).toBe('400 BAD_REQUEST');
  });
});

describe('the credential of a hosted agent', () => {
  const KEY = 'sk-very-secret';
  const hosted = { agent_type: 'painter', public_url: 'http://127.0.0.1:1/', agent_card: { name: 'x' } };
  const apiKey = { type: 'api_key', name: 'X-API-Key', value: KEY };
  const oauth = {
    type: 'oauth2_client_credentials',
    token_url: 'http://127.0.0.1:1/token',
    client_id: 'fleet',
    client_secret: KEY,
    scope: 'a2a:send',
  };
  const stored = async (instance_id: string) => {
    const rows = await api.database.query<{ auth: Buffer | null; text: string }>(
      'SELECT dispatch_auth AS auth, agents::text AS text FROM agents WHERE instance_id = $1',
      [instance_id],
    );
    return rows[0];
  };

  test.each([
    ['an API key', apiKey, { type: 'api_key', name: 'X-API-Key' }],
    [
      'a client of OAuth',
      oauth,
      {
        type: 'oauth2_client_credentials',
        token_url: 'http://127.0.0.1:1/token',
        client_id: 'fleet',
        scope: 'a2a:send',
      },
    ],
  ])('%s is stored encrypted and never shown', async (_, dispatch_auth, shown) => {
    const instance_id = fresh();
    const answer = await register({ ...hosted, instance_id, dispatch_auth });
    expect(answer.dispatch_auth).toEqual(shown);
    const row = await stored(instance_id);
    expect(row?.auth).toBeInstanceOf(Buffer);
    const seen = [
      answer,
      await read(instance_id),
      await eventsOf(instance_id),
      row?.text,
      row?.auth?.toString('latin1'),
    ];
    expect(JSON.stringify(seen)).not.toContain(KEY);
  });

  test('is that of the last registration, and ends with a deregistration', async () => {
    const instance_id = fresh();
    await register({ ...hosted, instance_id, dispatch_auth: apiKey });
    const moved = await register({ ...hosted, instance_id, public_url: 'http://127.0.0.1:2/' });
    expect(moved.dispatch_auth).toEqual({ type: 'bearer_jwt' });
    expect((await stored(instance_id))?.auth).toBeNull();
    await register({ ...hosted, instance_id, dispatch_auth: apiKey });
    await api.client.post('/agents/deregister', { instance_id });
    expect((await stored(instance_id))?.auth).toBeNull();
  });

  test.each([
    ['a header of the platform', { ...apiKey, name: 'traceparent' }, /header that the platform sets/],
    ['no header', { ...apiKey, name: 'X Key' }, /name of a header/],
    ['a value that no header can carry', { ...apiKey, value: 'a\nb' }, /printable ASCII/],
    ['an unknown type', { type: 'basic', username: 'u' }, /dispatch_auth/],
    ['an address that may not be reached', { ...oauth, token_url: 'http://10.0.0.1/' }, /token_url.*not allowed/],
  ])('is refused with %s', async (_, dispatch_auth, text) => {
    const { status, body } = await api.client.post('/agents/register', { ...hosted, dispatch_auth });
    expect({ status, body: JSON.stringify(body) }).toEqual({ status: 400, body: expect.stringMatching(text) });
    expect(JSON.stringify(body)).not.toContain(KEY);
  });

  test('is refused for a connected agent', async () => {
    const failure = await api.client.failure('/agents/register', { agent_type: 'painter', dispatch_auth: apiKey });
    expect(failure).toBe('400 BAD_REQUEST');
  });
});
