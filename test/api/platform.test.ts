import { expect, test } from 'vitest';
import { HealthResponse } from '../../contracts/api/health.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { httpServer } from '../runtime/loopback-server.js';
import { serveApi } from './served-api.js';

const api = await serveApi();

test('health is 200 when all is well', async () => {
  const answer = await api.client.get('/health');
  expect(answer.status).toBe(200);
  expect(HealthResponse.strict().parse(answer.body).status).toBe('ok');
});

test.each([
  ['temporal', 200],
  ['redis', 200],
  ['mesh', 200],
  ['database', 503],
] as const)('health is degraded while only %s is away: %i, and 503 where all has to be ready', async (part, status) => {
  const degraded = await serveApi({ checks: { [part]: 'down' } });
  const body = { status: 'degraded', checks: { [part]: 'down' } };
  expect(await degraded.client.get('/health')).toMatchObject({ status, body });
  expect(await degraded.client.get('/health?ready=full')).toMatchObject({ status: 503, body });
});

test('health where all has to be ready is 200 when all is', async () => {
  expect((await api.client.get('/health?ready=full')).status).toBe(200);
  expect((await api.client.get('/health?ready=perhaps')).status).toBe(200);
});

test('the description names every operation and its scope, and every schema that it refers to', async () => {
  const { body } = await api.client.get('/openapi.json');
  const { openapi, info, paths, components } = body as {
    openapi: string;
    info: { version: string };
    paths: Record<string, Record<string, { security: { bearer?: string[] }[] }>>;
    components: { schemas: object };
  };
  expect({ openapi, version: info.version }).toEqual({ openapi: '3.1.0', version: '1.0.0' });
  const listed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  const mounted = Object.values(OPERATIONS).map(
    ({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/, '{$1}')}`,
  );
  expect(listed.sort()).toEqual(mounted.sort());
  expect(paths['/credentials/create']?.post?.security).toEqual([{ bearer: ['full'] }]);
  const ready = { name: 'ready', in: 'query', schema: { const: 'full' } };
  expect(paths['/health']?.get).toMatchObject({ parameters: [ready] });
  const references = JSON.stringify(body).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g);
  const named = new Set([...references].map(([, name]) => name));
  expect(Object.keys(components.schemas)).toEqual(expect.arrayContaining([...named]));
  expect(JSON.stringify(body)).not.toContain('$defs');
  const selfNamed = Object.entries(components.schemas).filter(([name, schema]) =>
    JSON.stringify(schema).startsWith(`{"$ref":"#/components/schemas/${name}"`),
  );
  expect(selfNamed).toEqual([]);
});

/** What the specification names (its sections 4 to 6, deregistration by its event); everything else is an addition. */
const SPECIFIED = `
  /auth/get_token /sessions/init /sessions/get /sessions/close /sessions/interrupt
  /send /messages/get /messages/get_by_id /messages/pending /messages/cancel /messages/{id}/resolve
  /agents/register /agents/heartbeat /agents/deregister /agents/get_by_id /agents/connect
  /policies/delete_alert /policies/test_alert /policies/get_policy_by_id /policies/update_policy /policies/delete_policy
  /telemetry/get_events /.well-known/agent-card.json /health
  /knowledge_base/new /knowledge_base/get /knowledge_base/get_by_id /knowledge_base/update /knowledge_base/delete
  /knowledge_base/ingest /knowledge_base/query /knowledge_base/refresh /knowledge_base/get_stats
  /knowledge_base/get_sources /knowledge_base/delete_source /knowledge_base/get_status`
  .trim()
  .split(/\s+/);

interface Described {
  security: { bearer?: string[] }[];
  description?: string;
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: { required: boolean };
  'x-experimental'?: boolean;
}
async function described(): Promise<[path: string, operation: Described][]> {
  const { paths } = (await api.client.get('/openapi.json')).body as {
    paths: Record<string, Record<string, Described>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation): [string, Described] => [path, operation]),
  );
}

test('what the specification does not name is experimental, and nothing else', async () => {
  const operations = await described();
  const specified = operations.filter(([, operation]) => !operation['x-experimental']).map(([path]) => path);
  expect(specified.sort()).toEqual([...SPECIFIED].sort());
  expect(operations.length).toBeGreaterThan(SPECIFIED.length);
});

test('a body is required exactly where an absent one is refused', async () => {
  // The errors of JSON-RPC ride on 200.
  const withBody = (await described()).filter(
    ([path, { requestBody }]) =>
      requestBody && path !== '/send' && path !== '/a2a/{agent_type}' && !path.startsWith('/tenants/'),
  );
  expect(withBody.length).toBeGreaterThan(20);
  for (const [path, { requestBody }] of withBody) {
    const headers = await api.client.headers();
    // An event that is unknown, so that no stream begins, which would have no end.
    const called = path === OPERATIONS.streamEvents.path ? `${path}?last_event_id=evt_unknown` : path;
    const { status, body } = await api.client.raw(called.replace('{id}', 'msg_x'), null, headers);
    const isEmpty = status === 400 && (body as { error: string }).error === 'The body is empty.';
    expect([path, requestBody?.required]).toEqual([path, isEmpty]);
  }
});

// That they need it is in the table of permissions.test.ts.
test.each([
  ['/agents/register', 'full'],
  ['/agents/heartbeat', 'admin'],
  ['/agents/deregister', 'admin'],
])('%s names the scope that a token without an agent needs: %s', async (path, scope) => {
  const operation = (await described()).find(([named]) => named === path)?.[1];
  expect(operation).toMatchObject({ security: [{ bearer: [scope] }], description: expect.stringContaining('read') });
});

test('what speaks both versions of A2A takes the version as a header and in the query', async () => {
  const versioned = (await described()).filter(([, { parameters = [] }]) =>
    ['header', 'query'].every((place) => parameters.some((one) => one.name === 'A2A-Version' && one.in === place)),
  );
  expect(versioned.map(([path]) => path)).toEqual([
    '/send',
    '/a2a/{agent_type}',
    '/.well-known/agent-card.json',
    '/a2a/{agent_type}/.well-known/agent-card.json',
  ]);
});

test.each([
  ['/docs', 'text/html', 'id="reference"'],
  ['/docs/init.js', 'text/javascript', 'SwaggerUIBundle'],
  ['/docs/swagger-ui-bundle.js', 'text/javascript', 'SwaggerUIBundle'],
  ['/docs/swagger-ui.css', 'text/css', '.swagger-ui'],
])(
  'the reference of the interface has %s, of its type and under a policy that allows no other origin',
  async (path, type, part) => {
    const { status, headers, body } = await api.client.get(path);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe(`${type}; charset=utf-8`);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'/);
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/);
    expect(String(body)).toContain(part);
  },
);

test('the page of the reference loads its own files only and has no inline code', async () => {
  const page = String((await api.client.get('/docs')).body);
  const loaded = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]);
  expect(loaded).toEqual(['data:,', 'docs/swagger-ui.css', 'docs/swagger-ui-bundle.js', 'docs/init.js']);
  expect(page).not.toMatch(/<style|<script>|\son\w+=|style=/);
  const slash = await api.client.get('/docs/');
  expect([slash.status, slash.headers.get('location')]).toEqual([302, '../docs']);
});

test('events are filtered by what is asked for, newest first', async () => {
  const { session_id } = (await api.client.post('/sessions/init', {})).body as { session_id: string };
  await api.client.post('/sessions/close', { session_id, reason: 'enough' });
  const events = async (body: object) =>
    (await api.client.ok('/telemetry/get_events', body, GetEventsResponse.strict())).events;
  const types = (await events({ session_id })).map(({ type }) => type);
  expect(types).toEqual(['session.closed', 'session.created']);
  expect((await events({ session_id, type: 'session.closed' })).map(({ event }) => event.reason)).toEqual(['enough']);
  expect(await events({ session_id, from: '2999-01-01T00:00:00+02:00' })).toEqual([]);
  expect(await events({ session_id, to: '2999-01-01T00:00:00Z' })).toHaveLength(2);
});

test.each([
  ['0000-01-01T00:00:00Z', 400],
  ['0001-01-01T00:00:00+23:59', 400],
  ['9999-12-31T23:59:59-23:59', 400],
  ['2020-02-30T00:00:00Z', 400],
  ['2020-01-01', 400],
  ['0001-01-01T00:00:00Z', 200],
  ['9999-12-31T23:59:59.999Z', 200],
  ['2020-01-01T00:00:00+23:59', 200],
  [`2020-01-01T00:00:00.${'9'.repeat(200)}Z`, 200],
])('events from and to %s: %i', async (moment, status) => {
  expect((await api.client.post('/telemetry/get_events', { from: moment })).status).toBe(status);
  expect((await api.client.post('/telemetry/get_events', { to: moment })).status).toBe(status);
});

test('a resolution without a token and without a callback token is 401; so is a callback token that nobody issued', async () => {
  const json = { 'content-type': 'application/json' };
  for (const body of [
    '{}',
    '{"resolution":"approved"}',
    '{"callback_token":""}',
    '{"resolution":"approved","callback_token":"guess"}',
  ]) {
    expect((await api.client.raw('/messages/msg_x/resolve', body, json)).status).toBe(401);
  }
  expect((await api.client.raw('/messages/msg_x/resolve', '{"callback_token":"guess"}', json)).status).toBe(400);
});

test('another server pending requests over, as the mesh does on its own address', async () => {
  await api.app.ready();
  const other = await httpServer((request, response) => api.app.routing(request, response));
  expect((await fetch(`${other.url}/send`, { method: 'POST', body: '{}' })).status).toBe(401);
});

test('the root leads a browser to the documentation, and names everything else that needs no token', async () => {
  const page = await fetch(api.baseUrl, { headers: { accept: 'text/html,*/*' }, redirect: 'manual' });
  expect([page.status, page.headers.get('location')]).toEqual([302, 'docs']);
  const { status, body } = await api.client.get('/');
  expect(status).toBe(200);
  const { links } = body as { links: Record<string, string> };
  for (const link of Object.values(links)) expect((await fetch(new URL(link, `${api.baseUrl}/`))).status).toBe(200);
});
