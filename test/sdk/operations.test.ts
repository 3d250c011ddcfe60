import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openApiDocument } from '../../contracts/api/openapi.js';
import { FleetClient } from '../../sdk/index.js';
import { answering, Reply } from './answering.js';

function clientOf(url: string): FleetClient {
  const client = new FleetClient({ url, token: 't' });
  onTestFinished(() => client.close());
  return client;
}

test.each([
  ['sdk/client/generated/operations.ts', []],
  ['python/src/agent_fleet/client/generated/operations.py', ['GET /telemetry/stream_events']], // `POST`, for browsers
])('%s has a method for every operation of the OpenAPI document', (file, others) => {
  const { paths } = openApiDocument('http://localhost') as { paths: Record<string, object> };
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((verb) => `${verb.toUpperCase()} ${path}`),
  );
  expect(documented.length).toBeGreaterThan(60);
  const source = readFileSync(join(import.meta.dirname, '..', '..', file), 'utf8');
  const methods = [...source.matchAll(/`((?:GET|POST) \/.+?)`\. /g)].map(([, operation]) => operation);
  // `/send` is `send`, `stream` and `tasks`, and the address of a type is for other A2A clients; the WebSocket of agents is `Agent`.
  const notGenerated = ['POST /send', 'POST /a2a/{agent_type}', 'GET /agents/connect', ...others];
  expect([...methods, ...notGenerated].sort()).toEqual(documented.sort());
});

test('requests go out in snake_case and answers come in camelCase; documents of the caller keep their names', async () => {
  const agent = {
    instance_id: 'shop-1',
    agent_type: 'shop',
    agent_card: { supports_streaming: true, defaultInputModes: ['text/plain'] },
    context: { shelf_number: 7 },
  };
  const { url, requests } = await answering(() => ({ ok: true, tenant_id: 'ten_1', agent }));
  const answer = await clientOf(url).agents.register({
    agentType: 'shop',
    maxConcurrentSessions: 3,
    agentCard: agent.agent_card,
    skills: [{ id: 'sell', inputModes: ['text/plain'], own_member: 1 }],
    tools: [{ name: 'price', inputSchema: { type: 'object', properties: { itemId: {}, item_name: {} } } }],
    context: agent.context,
  });
  expect(requests).toEqual([
    {
      method: 'POST',
      path: '/agents/register',
      body: {
        agent_type: 'shop',
        max_concurrent_sessions: 3,
        agent_card: agent.agent_card,
        skills: [{ id: 'sell', inputModes: ['text/plain'], own_member: 1 }],
        tools: [{ name: 'price', input_schema: { type: 'object', properties: { itemId: {}, item_name: {} } } }],
        context: agent.context,
      },
    },
  ]);
  expect(answer).toEqual({
    ok: true,
    tenantId: 'ten_1',
    agent: { instanceId: 'shop-1', agentType: 'shop', agentCard: agent.agent_card, context: agent.context },
  });
});

test('members and values that a newer platform adds are passed on', async () => {
  const session = { session_id: 'ses_1', status: 'archived', kept_until: '2030-01-01', metadata: { own_name: 1 } };
  const { url } = await answering(() => ({ ok: true, session, next_step: { after_ms: 5 } }));
  const answer = await clientOf(url).sessions.getById({ sessionId: 'ses_1' });
  expect(answer).toEqual({
    ok: true,
    session: { sessionId: 'ses_1', status: 'archived', keptUntil: '2030-01-01', metadata: { own_name: 1 } },
    nextStep: { afterMs: 5 },
  });
  const { status } = answer.session;
  expect(status === 'active' ? 'open' : status).toBe('archived');
});

test('parameters of paths and queries, forms, and operations without a token', async () => {
  const { url, requests } = await answering(({ path }) => (path === '/auth/get_token' ? { token: 't' } : { ok: true }));
  const client = new FleetClient({ url, token: () => Promise.reject(new Error('no token')) });
  onTestFinished(() => client.close());
  await client.platform.health({ ready: 'full' });
  await client.auth.getToken({ clientId: 'c', clientSecret: 's', expiresIn: 300 });
  await client.slack.interactions({ payload: '{"a":1}' });
  await expect(client.sessions.get()).rejects.toThrow('no token');
  await clientOf(url).messages.resolve('msg/1', { resolution: 'submitted', data: { own_name: 1 } });
  expect(requests).toEqual([
    { method: 'GET', path: '/health?ready=full' },
    { method: 'POST', path: '/auth/get_token', body: { client_id: 'c', client_secret: 's', expires_in: 300 } },
    { method: 'POST', path: '/slack/interactions', body: 'payload=%7B%22a%22%3A1%7D' },
    { method: 'POST', path: '/messages/msg%2F1/resolve', body: { resolution: 'submitted', data: { own_name: 1 } } },
  ]);
});

test('an export comes as one item for each line', async () => {
  const lines = ['apv_1', 'apv_2'].map(
    (approval_id) => `{"approval_id":"${approval_id}","arguments":{"own_name":1}}\n`,
  );
  const { url, requests } = await answering(() => new Reply(lines.join(''), { type: 'application/jsonl' }));
  const items: object[] = [];
  for await (const item of clientOf(url).messages.exportApprovals({ since: '2026-01-01T00:00:00Z' })) items.push(item);
  const approval = (approvalId: string) => ({ approvalId, arguments: { own_name: 1 } });
  expect(items).toEqual([approval('apv_1'), approval('apv_2')]);
  expect(requests).toMatchObject([{ path: '/messages/export_approvals', body: { since: '2026-01-01T00:00:00Z' } }]);
});

test('a stream of events goes on after its last event on another connection, and ends with its signal', async () => {
  const event = (id: string) =>
    `id: ${id}\nevent: message.received\ndata: {"event_id":"${id}","event_type":"message.received"}\n\n`;
  const closed = 'event: stream.closed\ndata: {"code":"BACKPRESSURE","error":"slow"}\n\n';
  const streams = [`${event('evt_1')}${closed}`, event('evt_2')];
  const { url, requests } = await answering(() => streams.shift() ?? event('evt_3'));
  const stop = new AbortController();
  const seen: string[] = [];
  const follow = async () => {
    for await (const { eventId } of clientOf(url).telemetry.streamEvents({ sessionId: 's' }, { signal: stop.signal })) {
      seen.push(eventId);
      if (seen.length === 2) stop.abort(new Error('enough'));
    }
  };
  await expect(follow()).rejects.toThrow('enough');
  expect(seen).toEqual(['evt_1', 'evt_2']);
  expect(requests).toMatchObject([{ body: { session_id: 's' } }, { lastEventId: 'evt_1' }]);
});
