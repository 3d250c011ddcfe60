import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Agent, type AgentOptions, type ConnectionEvents } from '../../sdk/index.js';
import { until } from '../setup/until.js';
import { MeshServer } from './mesh-server.js';

interface Warning {
  code: string;
  error: string;
}

/** An agent that has not joined yet, with what it warned of, in its log and by `onError`. */
function agentWith(options: Partial<AgentOptions>) {
  const warnings: Warning[] = [];
  const errors: string[] = [];
  const lost: ConnectionEvents['disconnected'][] = [];
  const agent = new Agent({
    clientId: 'cred_1',
    clientSecret: 'secret',
    type: 'shop',
    instanceId: 'shop-1',
    drainOnSignals: false,
    log: { debug() {}, info() {}, warn: (fields) => void warnings.push(fields as Warning), error() {} },
    onError: (error) => void errors.push(error.message),
    ...options,
  });
  agent.on('disconnected', (detail) => lost.push(detail));
  onTestFinished(() => agent.close(0).catch(() => undefined));
  return { agent, warnings, errors, lost };
}

async function listening(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test.each<[string, Partial<AgentOptions>, RegExp]>([
  ['no address', { url: 'not an address' }, /not an address.*`url`.*FLEET_BASE_URL/],
  ['an address without a scheme', { url: 'localhost:8080' }, /http:\/\//],
  ['an unknown scheme', { url: 'ftp://127.0.0.1' }, /ftp:.*http/],
  ['the address of a mesh', { url: 'wss://127.0.0.1:8443' }, /mesh.*API/],
  ['an authority that is no certificate', { url: 'http://127.0.0.1', ca: 'garbage' }, /`ca`.*FLEET_CA_FILE/],
  [
    'a broken certificate',
    { url: 'http://127.0.0.1', ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' },
    /`ca`.*FLEET_CA_FILE/,
  ],
])('%s is refused at once', async (_what, options, remedy) => {
  await expect(agentWith(options).agent.connect()).rejects.toThrow(remedy);
});

test.each<[string, string, number, object | string, object]>([
  [
    'a wrong secret',
    '/auth/get_token',
    401,
    { error: 'The credential is not valid.', code: 'unauthorized' },
    { code: 'unauthorized', message: expect.stringMatching(/not valid.*FLEET_CLIENT_SECRET/) },
  ],
  [
    'a type that the credential may not ask for',
    '/auth/get_token',
    403,
    { error: 'This credential may ask for the agent types a, b.', code: 'forbidden' },
    { code: 'forbidden', message: expect.stringMatching(/types a, b.*`type`/) },
  ],
  [
    'a type that may not join',
    '/agents/register',
    403,
    { error: 'Agents of the type shop may not join this tenant.', code: 'forbidden' },
    { code: 'forbidden', message: expect.stringMatching(/may not join.*`type`/) },
  ],
  [
    'some other web server',
    '/agents/register',
    404,
    'Not here',
    { code: 'NOT_A_PLATFORM', message: expect.stringMatching(/http:\/\/127.*FLEET_BASE_URL/) },
  ],
  [
    'a web server that refuses the request',
    '/auth/get_token',
    400,
    'Bad Request',
    { code: 'NOT_A_PLATFORM', message: expect.stringMatching(/http:\/\/127.*FLEET_BASE_URL/) },
  ],
  [
    'the mesh in place of the API',
    '/auth/get_token',
    404,
    { error: 'There is nothing here.', code: 'NOT_FOUND' },
    { code: 'NOT_THE_API', message: expect.stringMatching(/mesh.*FLEET_BASE_URL/) },
  ],
  [
    'the mesh without TLS in place of the API',
    '/auth/get_token',
    426,
    { error: 'Connect with a WebSocket over TLS (wss).', code: 'UPGRADE_REQUIRED' },
    { code: 'NOT_THE_API', message: expect.stringMatching(/mesh.*FLEET_BASE_URL/) },
  ],
])('%s ends connect() at once, with what to do', async (_what, path, status, body, expected) => {
  const mesh = await MeshServer.start();
  mesh.refusals.set(path, { status, body });
  const { agent } = agentWith({ url: mesh.baseUrl, ca: mesh.ca });
  await expect(agent.connect()).rejects.toMatchObject({ name: 'AgentStoppedError', ...expected });
});

test('a 404 after the first registration is a proxy’s mood: the agent comes back', async () => {
  const mesh = await MeshServer.start();
  const { agent, lost } = agentWith({ url: mesh.baseUrl, ca: mesh.ca });
  await agent.connect();
  mesh.refusals.set('/agents/register', { status: 404, body: 'default backend' });
  mesh.sockets[0]?.close(1008); // the mesh does not know it: it registers again
  await until(() => lost.length === 2, { what: 'the registration that failed' });
  mesh.refusals.clear();
  await mesh.frame('hello', undefined, 2);
  expect(mesh.of('hello')).toHaveLength(2);
});

test('nobody answers: told once, with what to do, and tried again', async () => {
  const closed = createTcpServer();
  const port = await listening(closed);
  closed.close();
  const { agent, warnings, errors, lost } = agentWith({ url: `http://127.0.0.1:${port}` });
  const connecting = agent.connect();
  await until(() => lost.length >= 2, { what: 'two attempts' });
  expect(warnings).toMatchObject([{ code: 'UNREACHABLE' }]);
  expect(warnings[0]?.error).toMatch(new RegExp(`nothing answers at http://127.0.0.1:${port}.*FLEET_BASE_URL`));
  expect(errors).toEqual([warnings[0]?.error]);
  await agent.close();
  await connecting;
});

test('a mesh whose certificate is not trusted: told once, and not registered anew for it', async () => {
  const mesh = await MeshServer.start();
  const { agent, warnings, lost } = agentWith({ url: mesh.baseUrl });
  const connecting = agent.connect();
  await until(() => lost.length >= 2, { what: 'two attempts' });
  expect(warnings).toMatchObject([{ code: 'UNTRUSTED_CERTIFICATE' }]);
  expect(warnings[0]?.error).toContain(`wss://${mesh.meshAddress}`);
  expect(warnings[0]?.error).toMatch(/`ca`.*FLEET_CA_FILE/);
  expect(mesh.requests.filter(({ path }) => path === '/agents/register')).toHaveLength(1);
  await agent.close();
  await connecting;
});

test.each<[string, (mesh: MeshServer) => Partial<AgentOptions>, string, RegExp]>([
  [
    'an API whose certificate is not trusted',
    (mesh) => ({ url: `https://${mesh.meshAddress}` }),
    'UNTRUSTED_CERTIFICATE',
    /https:\/\/.*FLEET_CA_FILE/,
  ],
  [
    'https where no TLS is spoken',
    (mesh) => ({ url: mesh.baseUrl.replace('http:', 'https:') }),
    'NO_TLS',
    /https:\/\/.*http:\/\//,
  ],
  [
    'a host that does not exist',
    () => ({ url: 'http://fleet.invalid' }),
    'UNKNOWN_HOST',
    /fleet\.invalid.*FLEET_BASE_URL/,
  ],
])('%s is named', async (_what, optionsOf, code, remedy) => {
  const mesh = await MeshServer.start();
  const { agent, warnings } = agentWith(optionsOf(mesh));
  const connecting = agent.connect();
  await until(() => warnings.length > 0, { what: 'a warning' });
  expect(warnings[0]).toMatchObject({ code, error: expect.stringMatching(remedy) });
  await agent.close();
  await connecting;
});

test('a web page where the API should be is named', async () => {
  const server = createServer((_request, response) => response.end('<html>Welcome!</html>'));
  const { agent, warnings } = agentWith({ url: `http://127.0.0.1:${await listening(server)}` });
  const connecting = agent.connect();
  await until(() => warnings.length > 0, { what: 'a warning' });
  expect(warnings[0]).toMatchObject({ code: 'NOT_A_PLATFORM', error: expect.stringContaining('FLEET_BASE_URL') });
  await agent.close();
  await connecting;
});

test('a platform that takes the request and does not answer is named, and close() does not wait for it', async () => {
  const server = createTcpServer((socket) => void socket.on('error', () => undefined));
  const { agent, warnings } = agentWith({ url: `http://127.0.0.1:${await listening(server)}` });
  const connecting = agent.connect();
  await until(() => warnings.length > 0, { what: 'a warning' });
  expect(warnings[0]).toMatchObject({ code: 'NO_ANSWER', error: expect.stringContaining('FLEET_BASE_URL') });
  await agent.close();
  await connecting;
});

test('why the mesh refused a frame is told', async () => {
  const mesh = await MeshServer.start();
  const { agent, warnings, lost } = agentWith({ url: mesh.baseUrl, ca: mesh.ca });
  await agent.connect();
  const inReplyTo = mesh.send('ping', {});
  mesh.send('error', { code: 'BAD_FRAME', message: 'payload.seq: expected number', retryable: false }, { inReplyTo });
  mesh.sockets[0]?.close(1002);
  await until(() => lost.length > 0, { what: 'the end of the connection' });
  expect(warnings).toMatchObject([{ code: 'BAD_FRAME', error: expect.stringContaining('payload.seq') }]);
});

test('connect() ends at its time limit and says what the trouble was', async () => {
  const mesh = await MeshServer.start();
  const { agent } = agentWith({ url: mesh.baseUrl });
  const connecting = agent.connect({ timeoutMs: 500 });
  await expect(connecting).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'CONNECT_TIMEOUT' });
  await expect(connecting).rejects.toThrow(/500 ms.*not trusted/);
  await expect(agent.closed).rejects.toMatchObject({ code: 'CONNECT_TIMEOUT' });
});

test('an agent that could not join may try again', async () => {
  const mesh = await MeshServer.start();
  mesh.refusals.set('/agents/register', { status: 403, body: { error: 'not yet', code: 'forbidden' } });
  const { agent } = agentWith({ url: mesh.baseUrl, ca: mesh.ca });
  agent.onMessage(() => 'there');
  await expect(agent.connect()).rejects.toThrow('not yet');
  mesh.refusals.clear();
  await agent.connect();
  await mesh.frame('dispatch_result', mesh.dispatch('go'));
  await expect(agent.connect()).rejects.toThrow('joined already');
});

test('connect() ends with its signal, and what it has reached stays', async () => {
  const mesh = await MeshServer.start();
  const stop = new AbortController();
  const { agent } = agentWith({ url: mesh.baseUrl });
  const connecting = agent.connect({ signal: stop.signal });
  stop.abort(new Error('changed my mind'));
  await expect(connecting).rejects.toThrow('changed my mind');
  const { agent: early } = agentWith({ url: mesh.baseUrl, ca: mesh.ca });
  await expect(early.connect({ signal: stop.signal })).rejects.toThrow('changed my mind');

  const later = new AbortController();
  const { agent: other } = agentWith({ url: mesh.baseUrl, ca: mesh.ca });
  await other.connect({ signal: later.signal, timeoutMs: 60_000 });
  later.abort();
  other.reportStatus('busy');
  await vi.waitFor(() => expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('busy'));
});

test('without a log of its own an agent writes on standard error, a line each; with a silent one it does not', async () => {
  const { SILENT_LOG } = await import('../../sdk/index.js');
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  const mesh = await MeshServer.start();
  for (const log of [undefined, SILENT_LOG]) {
    const { agent } = agentWith({ url: mesh.baseUrl, log });
    await expect(agent.connect({ timeoutMs: 500 })).rejects.toThrow(/500 ms/);
  }
  const lines = write.mock.calls.map(([text]) => String(text));
  expect(lines).toEqual([
    expect.stringMatching(/^agent shop: not connected, trying again: [^\n]*not trusted[^\n]*FLEET_CA_FILE[^\n]*\n$/),
  ]);
});

test('by default an agent says a line when it has joined, loses its connection, has it again, and drains', async () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  const mesh = await MeshServer.start();
  const { agent } = agentWith({ url: mesh.baseUrl, ca: mesh.ca, log: undefined, instanceId: 'shop-1' });
  await agent.connect();
  for (const [index, closeCode] of [1011, 1011].entries()) {
    mesh.sockets.at(-1)?.close(closeCode);
    await mesh.frame('heartbeat', undefined, index + 2);
  }
  await agent.close(7);
  const where = `instance_id=shop-1 url=${mesh.baseUrl}`;
  expect(write.mock.calls.map(([text]) => String(text))).toEqual([
    `agent shop: joined the platform (${where})\n`,
    expect.stringMatching(/^agent shop: connection lost, trying again: [^\n]*\(code=CONNECTION_LOST\)\n$/),
    `agent shop: connected again (${where} resumed=false)\n`,
    'agent shop: draining: takes no new work and finishes what runs (grace_seconds=7)\n',
  ]);
});
