import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { AGENT_NOT_READY } from '../../../contracts/errors.js';
import { Agent, type AgentOptions, type MessageHandler } from '../../../sdk/index.js';
import { until } from '../../setup/until.js';
import { localCertificate } from '../certificate.js';

type Body = Record<string, unknown>;
type Call = { path: string; body: Body };
type Warning = { fields: Body; text: string };

const MODES = { deployment_mode: 'hosted', connect_url: null, dispatch_auth: { type: 'bearer_jwt' } };

/** A platform as a hosted agent sees it: keys, registration and heartbeats, over TLS of its own authority where asked for. */
async function platform(options: { tls?: { cert: string; key: string }; onCall?: (call: Call) => Promise<void> } = {}) {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'EdDSA', use: 'sig' };
  const refusals = new Map<string, { status: number; body: Body }>();
  const fakePlatform = { url: '', keys: { keys: [jwk] } as object, calls: [] as Call[], refusals };
  const reply = async (request: IncomingMessage) => {
    if (request.method === 'GET') return fakePlatform.keys;
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const call = { path: request.url ?? '', body: JSON.parse(text) as Body };
    fakePlatform.calls.push(call);
    await options.onCall?.(call);
    return call.path === '/agents/register' ? registered(fakePlatform.url, call.body) : { ok: true };
  };
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void reply(request).then((body) => {
      const refusal = refusals.get(request.url ?? '');
      response.writeHead(refusal?.status ?? 200).end(JSON.stringify(refusal?.body ?? body));
    });
  const server = options.tls ? createHttpsServer(options.tls, listener) : createHttpServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  fakePlatform.url = `http${options.tls ? 's' : ''}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const token = (claims: { audience?: string; expires?: string; tenant?: string; key?: typeof privateKey } = {}) =>
    new SignJWT({ tenant_id: claims.tenant ?? 'ten_1' })
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k1' })
      .setAudience(claims.audience ?? 'shop-1')
      .setIssuedAt()
      .setExpirationTime(claims.expires ?? '60s')
      .sign(claims.key ?? privateKey);
  return Object.assign(fakePlatform, { token });
}

function registered(url: string, body: Body) {
  const agent = {
    ...MODES,
    instance_id: body.instance_id,
    agent_type: body.agent_type,
    public_url: body.public_url,
    tenant_id: 'ten_1',
    mesh_id: null,
    status: 'unknown',
    current_sessions: 0,
    max_concurrent_sessions: 10,
    consecutive_failures: 0,
    last_seen: null,
    registered_at: new Date().toISOString(),
    agent_version: null,
    provider_organization: null,
    provider_url: null,
    agent_card: {},
    context: {},
  };
  const jwks_url = `${url}/.well-known/jwks.json`;
  return { ok: true, tenant_id: 'ten_1', instance_id: body.instance_id, ...MODES, jwks_url, agent };
}

function agentOf(
  url: string,
  options: Partial<AgentOptions> = {},
  handler: MessageHandler = (task) => `got ${task.text}`,
) {
  const warnings: Warning[] = [];
  const silent = { debug() {}, info() {}, error() {} };
  const log = {
    ...silent,
    warn: (fields: object, text: string) => void warnings.push({ fields: { ...fields }, text }),
  };
  const given = { url, token: 'own', type: 'shop', instanceId: 'shop-1', drainOnSignals: false, log, ...options };
  const agent = new Agent(given).onMessage(handler);
  onTestFinished(() => agent.close(0).catch(() => undefined));
  return { agent, warnings };
}

async function post(url: string, bearer: string | null, method = 'message/send', dispatchId = 'dsp_1') {
  const message = { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'tea' }] };
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const ids = { session_id: 'ses_1', tenant_id: 'ten_1', message_id: 'msg_1' };
  const body = {
    ...{ jsonrpc: '2.0', id: 'frame-1', method, params: { message }, dispatch_id: dispatchId, deadline_ms: 10_000 },
    ...{ attempt: 1, idempotency_key: dispatchId },
    session_context: { ...ids, propagation_headers: { traceparent: trace } },
  };
  const headers = { 'content-type': 'application/json', ...(bearer !== null && { authorization: `Bearer ${bearer}` }) };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function stateOf(response: Response): Promise<string> {
  return ((await response.json()) as { result: { status: { state: string } } }).result.status.state;
}

test('fetches the keys of a platform whose certificate is of an authority of its own', async () => {
  const { ca, cert, key } = await localCertificate();
  const fakePlatform = await platform({ tls: { cert, key } });
  const { agent } = agentOf(fakePlatform.url, { ca });
  const url = await agent.serve();
  const response = await post(url, await fakePlatform.token());
  expect(response.status).toBe(200);
  expect(await stateOf(response)).toBe('completed');
});

test('a request that comes before the answer to the registration waits for it', async () => {
  let answer: Promise<Response> | undefined;
  const fakePlatform = await platform({
    onCall: async ({ path, body }) => {
      if (path === '/agents/register')
        answer = fakePlatform.token().then((token) => post(String(body.public_url), token));
      // The agent's own server answers this, so the post has been accepted by then.
      if (path === '/agents/register') await fetch(new URL('/.well-known/agent-card.json', String(body.public_url)));
    },
  });
  const { agent } = agentOf(fakePlatform.url);
  await agent.serve();
  expect((await answer)?.status).toBe(200);
});

test('says once for each reason why it refuses tokens, and what to do', async () => {
  const fakePlatform = await platform();
  const stranger = (await generateKeyPair('EdDSA', { crv: 'Ed25519' })).privateKey;
  const { agent, warnings } = agentOf(fakePlatform.url);
  const url = await agent.serve();
  const bad: [string, string | null][] = [
    ['missing', null],
    ['malformed', 'x.y.z'],
    ['unknown_key', await fakePlatform.token({ key: stranger })],
    ['expired', await fakePlatform.token({ expires: '-1 minute' })],
    ['other_agent', await fakePlatform.token({ audience: 'shop-2' })],
  ];
  for (const [, token] of [...bad, ...bad]) expect((await post(url, token)).status).toBe(401);
  expect((await post(url, await fakePlatform.token({ tenant: 'ten_2' }))).status).toBe(401);
  expect(warnings.map(({ fields }) => fields.reason)).toEqual(bad.map(([reason]) => reason));
  expect(warnings.find(({ fields }) => fields.reason === 'expired')?.text).toContain('clocks');
});

test('without the keys it is not ready, says why, and is once they are there', async () => {
  const fakePlatform = await platform();
  const { keys } = fakePlatform;
  fakePlatform.keys = { page: 'not found' };
  const { agent, warnings } = agentOf(fakePlatform.url);
  const url = await agent.serve();
  const refused = await post(url, await fakePlatform.token());
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: AGENT_NOT_READY }]);
  expect(warnings).toMatchObject([{ fields: { reason: 'keys_unavailable' } }]);
  expect(warnings[0]?.text).toContain('FLEET_CA_FILE');
  fakePlatform.keys = keys;
  expect((await post(url, await fakePlatform.token())).status).toBe(200);
});

test('a heartbeat that is under way when the agent stops does not come after the one that says so', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let beats = 0;
  const { promise: begun, resolve: onBegun } = withResolvers();
  const ended: unknown[] = [];
  const fakePlatform = await platform({
    onCall: async ({ path, body }) => {
      if (path !== '/agents/heartbeat') return;
      beats += 1;
      if (beats === 2) {
        onBegun();
        await held;
      }
      ended.push(body.status);
    },
  });
  const { agent } = agentOf(fakePlatform.url);
  await agent.serve();
  agent.reportStatus('busy');
  await begun;
  const closed = agent.close();
  // A heartbeat beside the one that is held would be here before these.
  for (let trip = 0; trip < 5; trip += 1) await fetch(fakePlatform.url);
  release();
  await closed;
  expect(ended).toEqual(['available', 'busy', 'draining']);
});

const DEREGISTERED = { status: 404, body: { error: 'The instance was deregistered.', code: 'DEREGISTERED' } };

test('a hosted agent that was deregistered finishes what it has and stays away', async () => {
  const { promise: begun, resolve: onBegun } = withResolvers();
  const { promise: finished, resolve: finish } = withResolvers();
  const fakePlatform = await platform();
  const { agent, warnings } = agentOf(fakePlatform.url, {}, async () => {
    onBegun();
    await finished;
    return 'done';
  });
  const url = await agent.serve();
  const { closed } = agent;
  const answer = post(url, await fakePlatform.token());
  await begun;
  const beats = () => fakePlatform.calls.filter(({ path }) => path === '/agents/heartbeat').length;
  const before = beats();
  fakePlatform.refusals.set('/agents/heartbeat', DEREGISTERED);
  agent.reportStatus('busy');
  await until(() => beats() > before, { what: 'a refused heartbeat' });
  finish();
  expect(await stateOf(await answer)).toBe('completed');
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  expect(fakePlatform.calls.filter(({ path }) => path === '/agents/register')).toHaveLength(1);
  expect(warnings).toEqual([]);
});

test('a platform that takes the registration of a hosted agent and does not answer it is named', async () => {
  const server = createTcpServer((socket) => void socket.on('error', () => undefined));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const { agent, warnings } = agentOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const serving = agent.serve();
  await until(() => warnings.length > 0, { what: 'a warning' });
  expect(warnings).toMatchObject([{ fields: { code: 'NO_ANSWER' } }]);
  await agent.close(0);
  await serving;
});

test('what the platform had sent before it knew that the agent stops is answered', async () => {
  const late: Promise<Response>[] = [];
  const fakePlatform = await platform({
    onCall: async ({ body }) => {
      if (body.status !== 'draining') return;
      // Routed before, and on its way while the agent has the answer to this heartbeat already.
      late.push(delay(300).then(async () => post(url, await fakePlatform.token())));
    },
  });
  const { agent } = agentOf(fakePlatform.url);
  const url = await agent.serve();
  await agent.close();
  expect(late).toHaveLength(1);
  expect(await stateOf((await late[0]) as Response)).toBe('completed');
  await expect(fetch(url)).rejects.toThrow();
});

test('an outcome whose connection broke is kept until it was asked for', async () => {
  const fakePlatform = await platform();
  const { promise: begun, resolve: onBegun } = withResolvers();
  const { promise: finished, resolve: finish } = withResolvers();
  const { agent } = agentOf(fakePlatform.url, {}, async function* () {
    yield 'half ';
    onBegun();
    await finished;
    yield 'whole';
  });
  const url = await agent.serve();
  const response = await post(url, await fakePlatform.token(), 'message/stream');
  await begun;
  await response.body?.cancel();
  const closed = agent.close();
  finish();
  const ask = async () => {
    const headers = { authorization: `Bearer ${await fakePlatform.token()}` };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'dsp_1' } });
    return fetch(url, { method: 'POST', headers, body });
  };
  // As the platform, which looks every few seconds.
  await delay(2_500);
  expect(await stateOf(await ask())).toBe('completed');
  await closed;
}, 30_000);

test('a port that is taken rejects, and the agent is over', async () => {
  const fakePlatform = await platform();
  const { agent } = agentOf(fakePlatform.url);
  const port = Number(new URL(fakePlatform.url).port);
  await expect(agent.serve({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await expect(agent.closed).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

function withResolvers() {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
