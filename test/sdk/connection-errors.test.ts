import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Agent, type AgentOptions, SILENT_LOG } from '../../sdk/index.js';
import { until } from '../setup/until.js';
import { agentOn, agentWith, joined } from './agents.js';
import { MeshServer } from './mesh-server.js';

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What an agent that cannot join logs and reports, at least until so many attempts have ended; then it is closed. */
async function linesOf(options: Partial<AgentOptions>, attempts = 0) {
  const { agent, lines, errors, lost } = agentWith(options);
  const connecting = agent.connect();
  await until(() => lines.length > 0 && lost.length >= attempts, { what: 'the trouble' });
  await agent.close();
  await connecting;
  return { lines, errors };
}

const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';

test.each<[string, Partial<AgentOptions>, RegExp]>([
  ['no address', { url: 'not an address' }, /not an address.*`url`.*FLEET_BASE_URL/],
  ['an address without a scheme', { url: 'localhost:8080' }, /http:\/\//],
  ['an unknown scheme', { url: 'ftp://127.0.0.1' }, /ftp:.*http/],
  ['the address of a mesh', { url: 'wss://127.0.0.1:8443' }, /mesh.*API/],
  ['an address with parameters', { url: 'http://127.0.0.1/fleet?a=1' }, /has parameters.*with .* path/],
  [
    'an authority that is no file',
    { url: 'http://127.0.0.1', ca: 'garbage' },
    /read: the file \/.*garbage \(`ca`\)\. PEM as/,
  ],
  ['a file that is no authority', { url: 'http://127.0.0.1', ca: 'package.json' }, /PEM: the file \/.*\(`ca`\)/],
  ['bytes that are no authority', { url: 'http://127.0.0.1', ca: Buffer.from('x') }, /PEM: the bytes in `ca`/],
  ['a broken certificate', { url: 'http://127.0.0.1', ca: BROKEN }, /PEM: the text in `ca`/],
])('%s is refused at once', async (_what, options, remedy) => {
  await expect(agentWith(options).agent.connect()).rejects.toThrow(remedy);
});

// Which answers are final, and what is said of each, is in describe-error.test.ts.
test.each<[string, number, object | string, string]>([
  ['/auth/get_token', 401, { error: 'The credential is not valid.', code: 'unauthorized' }, 'unauthorized'],
  ['/agents/register', 403, { error: 'Agents of the type shop may not join.', code: 'forbidden' }, 'forbidden'],
  ['/agents/register', 404, 'Not here', 'NOT_A_PLATFORM'],
  ['/auth/get_token', 400, 'Bad Request', 'NOT_A_PLATFORM'],
])('%s ends connect() at once with %d %j', async (path, status, body, code) => {
  const { agent } = await agentOn((server) => server.refusals.set(path, { status, body }));
  await expect(agent.connect()).rejects.toMatchObject({ name: 'AgentStoppedError', code });
});

test('a 404 after the first registration is a proxy’s mood: the agent comes back', async () => {
  const { mesh, lost } = await joined(() => undefined);
  mesh.refusals.set('/agents/register', { status: 404, body: 'default backend' });
  mesh.sockets[0]?.close(1008); // the mesh does not know it: it registers again
  await until(() => lost.length === 2, { what: 'the registration that failed' });
  mesh.refusals.clear();
  await mesh.frame('hello', undefined, 2);
  expect(mesh.of('hello')).toHaveLength(2);
});

test('nobody answers: told once, with what to do, and tried again', async () => {
  const closed = createTcpServer();
  const url = await listening(closed);
  closed.close();
  const { lines, errors } = await linesOf({ url }, 2);
  const error = expect.stringMatching(new RegExp(`nothing answers at ${url}.*FLEET_BASE_URL`));
  expect(lines).toMatchObject([{ code: 'UNREACHABLE', error }]);
  expect(errors.map(({ message }) => message)).toEqual([lines[0]?.error]);
});

test('a mesh whose certificate is not trusted: told once, and not registered anew for it', async () => {
  const mesh = await MeshServer.start();
  const { lines } = await linesOf({ url: mesh.baseUrl }, 2);
  const error = expect.stringMatching(new RegExp(`wss://${mesh.meshAddress}.*\`ca\`.*FLEET_CA_FILE`));
  expect(lines).toMatchObject([{ code: 'UNTRUSTED_CERTIFICATE', error }]);
  expect(mesh.count('/agents/register')).toBe(1);
});

const page = () => createServer((_request, response) => response.end('<html>Welcome!</html>'));

test.each<[string, () => Promise<string>, string, RegExp]>([
  [
    'an API whose certificate is not trusted',
    async () => `https://${(await MeshServer.start()).meshAddress}`,
    'UNTRUSTED_CERTIFICATE',
    /https:\/\/.*FLEET_CA_FILE/,
  ],
  [
    'https where no TLS is spoken',
    async () => (await MeshServer.start()).baseUrl.replace('http:', 'https:'),
    'NO_TLS',
    /https:\/\/.*http:\/\//,
  ],
  ['a host that does not exist', async () => 'http://fleet.invalid', 'UNKNOWN_HOST', /fleet\.invalid.*FLEET_BASE_URL/],
  ['a web page where the API should be', () => listening(page()), 'NOT_A_PLATFORM', /FLEET_BASE_URL/],
])('%s is named', async (_what, address, code, remedy) => {
  const { lines } = await linesOf({ url: await address() });
  expect(lines[0]).toMatchObject({ code, error: expect.stringMatching(remedy) });
});

test.each<[string, Partial<AgentOptions>, (agent: Agent) => Promise<unknown>, grace?: number]>([
  ['answers no request for a token', {}, (agent) => agent.connect()],
  ['takes the registration of a hosted agent and does not answer it', { token: 'own' }, (agent) => agent.serve(), 0],
])('a platform that %s is named, and close() does not wait for it', async (_what, options, join, grace) => {
  const url = await listening(createTcpServer((socket) => void socket.on('error', () => undefined)));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { agent, lines } = agentWith({ url, ...options });
  const joining = join(agent);
  await until(() => vi.advanceTimersByTime(1_000) && lines.length > 0, { what: 'a warning' });
  expect(lines).toMatchObject([{ code: 'NO_ANSWER', error: expect.stringMatching(/_URL/) }]);
  await agent.close(grace);
  await joining;
});

test('why the mesh refused a frame is told', async () => {
  const { mesh, lines, lost } = await joined(() => undefined);
  const inReplyTo = mesh.send('ping', {});
  mesh.send('error', { code: 'BAD_FRAME', message: 'payload.seq: expected number', retryable: false }, { inReplyTo });
  mesh.sockets[0]?.close(1002);
  await until(() => lost.length > 0, { what: 'the end of the connection' });
  expect(lines).toMatchObject([{ code: 'BAD_FRAME', error: expect.stringContaining('payload.seq') }]);
});

test('connect() ends at its time limit and says what the trouble was', async () => {
  const { agent } = await agentOn(() => undefined, { ca: undefined });
  const connecting = agent.connect({ timeoutMs: 500 });
  await expect(connecting).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'CONNECT_TIMEOUT' });
  await expect(connecting).rejects.toThrow(/500 ms.*not trusted/);
  await expect(agent.closed).rejects.toMatchObject({ code: 'CONNECT_TIMEOUT' });
});

test('an agent that could not join may try again', async () => {
  const refusal = { status: 403, body: { error: 'not yet', code: 'forbidden' } };
  const { mesh, agent } = await agentOn((server) => server.refusals.set('/agents/register', refusal));
  agent.onMessage(() => 'there');
  await expect(agent.connect()).rejects.toThrow('not yet');
  mesh.refusals.clear();
  await agent.connect();
  await mesh.result(mesh.dispatch('go'));
  await expect(agent.connect()).rejects.toThrow('joined already');
});

test('connect() ends with its signal, and what it has reached stays', async () => {
  const stop = new AbortController();
  const { agent, mesh } = await agentOn(() => undefined, { ca: undefined });
  const connecting = agent.connect({ signal: stop.signal });
  stop.abort(new Error('changed my mind'));
  await expect(connecting).rejects.toThrow('changed my mind');
  const trusted = { url: mesh.baseUrl, ca: mesh.ca };
  await expect(agentWith(trusted).agent.connect({ signal: stop.signal })).rejects.toThrow('changed my mind');

  const later = new AbortController();
  const { agent: other } = agentWith(trusted);
  await other.connect({ signal: later.signal, timeoutMs: 60_000 });
  later.abort();
  other.reportStatus('busy');
  await vi.waitFor(() => expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('busy'));
});

/** What is written on standard error from now on, a line each. */
function standardError(): () => string[] {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  return () => write.mock.calls.map(([text]) => String(text));
}

test('without a log of its own an agent writes on standard error, a line each; with a silent one it does not', async () => {
  const written = standardError();
  const mesh = await MeshServer.start();
  for (const log of [undefined, SILENT_LOG]) {
    const { agent } = agentWith({ url: mesh.baseUrl, log });
    await expect(agent.connect({ timeoutMs: 500 })).rejects.toThrow(/500 ms/);
  }
  expect(written()).toEqual([
    expect.stringMatching(/^agent shop: not connected, trying again: [^\n]*not trusted[^\n]*FLEET_CA_FILE[^\n]*\n$/),
  ]);
});

test('by default an agent says a line when it has joined, loses its connection, has it again, and drains', async () => {
  const written = standardError();
  const { mesh, agent } = await joined(() => undefined, { log: undefined });
  for (const beats of [2, 3]) {
    mesh.sockets.at(-1)?.close(1011);
    await mesh.frame('heartbeat', undefined, beats);
  }
  await agent.close(7);
  const where = `instance_id=shop-1 url=${mesh.baseUrl}`;
  expect(written()).toEqual([
    `agent shop: joined the platform (${where})\n`,
    expect.stringMatching(/^agent shop: connection lost, trying again: [^\n]*\(code=CONNECTION_LOST\)\n$/),
    `agent shop: connected again (${where} resumed=false)\n`,
    'agent shop: draining: takes no new work and finishes what runs (grace_seconds=7)\n',
  ]);
});
