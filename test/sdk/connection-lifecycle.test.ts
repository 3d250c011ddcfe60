import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Agent, type AgentOptions, type ConnectionEvents } from '../../sdk/index.js';
import { until } from '../setup/until.js';
import { MeshServer, refusedUpgrade } from './mesh-server.js';

interface Line {
  level: string;
  code?: string;
  error?: string;
}

/** An agent on a fake platform, with what it logged and told. */
async function agentOn(prepare: (mesh: MeshServer) => void = () => undefined, options: Partial<AgentOptions> = {}) {
  const mesh = await MeshServer.start();
  prepare(mesh);
  const lines: Line[] = [];
  const errors: Error[] = [];
  const lost: ConnectionEvents['disconnected'][] = [];
  const write = (level: string) => (fields: object) => void lines.push({ level, ...fields });
  const agent = new Agent({
    url: mesh.baseUrl,
    ca: mesh.ca,
    clientId: 'cred_1',
    clientSecret: 'secret',
    type: 'shop',
    instanceId: 'shop-1',
    drainOnSignals: false,
    log: { debug() {}, info() {}, warn: write('warn'), error: write('error') },
    onError: (error) => void errors.push(error),
    ...options,
  });
  agent.on('disconnected', (detail) => lost.push(detail));
  onTestFinished(() => agent.close(0).catch(() => undefined));
  const registrations = () => mesh.requests.filter(({ path }) => path === '/agents/register').length;
  return { mesh, agent, lines, errors, lost, registrations };
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('an agent that was deregistered stays away', async () => {
  const { mesh, agent, registrations, lines, errors } = await agentOn();
  await agent.connect();
  const { closed } = agent;
  mesh.send('error', { code: 'DEREGISTERED', message: 'deregistered by the caller', retryable: false });
  mesh.sockets[0]?.close(4410);
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  expect(registrations()).toBe(1);
  expect(lines).toMatchObject([{ level: 'error', code: 'DEREGISTERED' }]);
  expect(errors).toMatchObject([{ code: 'DEREGISTERED' }]);
});

test('a mesh that says no welcome is left and tried again, without registering anew', async () => {
  const { mesh, agent, lines, registrations } = await agentOn(
    (server) => {
      server.isMute = true;
    },
    { handshakeTimeoutMs: 300 },
  );
  const connected = agent.connect();
  await mesh.frame('hello');
  await until(() => lines.length > 0, { what: 'a warning' });
  mesh.isMute = false;
  await connected;
  expect(lines).toMatchObject([{ level: 'warn', code: 'MESH_SILENT', error: expect.stringContaining('welcome') }]);
  expect(registrations()).toBe(1);
});

test('a handshake without an answer is tried again, without registering anew', async () => {
  let held = 0;
  const { mesh, agent, registrations } = await agentOn(
    (server) => {
      server.onUpgrade = () => {
        held += 1;
        return held <= 2;
      };
    },
    { handshakeTimeoutMs: 300 },
  );
  await agent.connect();
  expect(mesh.tokensOffered).toHaveLength(3);
  expect(registrations()).toBe(1);
});

test('a mesh that has not answered three handshakes may be elsewhere: the agent asks again', async () => {
  let held = 0;
  const { agent, registrations } = await agentOn(
    (server) => {
      server.onUpgrade = () => {
        held += 1;
        return held <= 3;
      };
    },
    { handshakeTimeoutMs: 100 },
  );
  await agent.connect();
  expect(registrations()).toBe(2);
});

test.each([
  ['DEREGISTERED', 1],
  ['NOT_FOUND', 2],
])('one that has joined asks first whether it is still wanted: %s makes %d registrations', async (code, count) => {
  const { mesh, agent, registrations } = await agentOn();
  await agent.connect();
  const { closed } = agent;
  mesh.refusals.set('/agents/heartbeat', { status: 404, body: { error: 'not here', code } });
  mesh.sockets[0]?.close(1008); // the mesh does not know it
  if (code === 'NOT_FOUND') await mesh.frame('hello', undefined, 2);
  else await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code });
  expect(registrations()).toBe(count);
});

test.each([
  [503, 'SERVICE_UNAVAILABLE'],
  [429, 'RATE_LIMITED'],
])('Retry-After of a handshake that is refused with %d is the least wait', async (status, code) => {
  const { agent, lost, registrations } = await agentOn((server) => {
    const refusal = { status, body: { error: 'too many', code }, headers: { 'retry-after': '40' } };
    server.onUpgrade = (socket) => socket.end(refusedUpgrade(refusal)) !== undefined;
  });
  const connecting = agent.connect();
  await until(() => lost.length > 0, { what: 'the refusal' });
  expect(lost[0]).toMatchObject({ code });
  expect(lost[0]?.retryInMs).toBeGreaterThanOrEqual(40_000);
  await agent.close();
  await connecting;
  expect(registrations()).toBe(1);
});

test.each(['/auth/get_token', '/agents/register'])('Retry-After of %s is the least wait', async (path) => {
  const { agent, lost } = await agentOn((server) => {
    const body = { error: 'too many', code: 'RATE_LIMITED' };
    server.refusals.set(path, { status: 429, body, headers: { 'retry-after': '40' } });
  });
  const connecting = agent.connect();
  await until(() => lost.length > 0, { what: 'the refusal' });
  expect(lost[0]?.retryInMs).toBeGreaterThanOrEqual(40_000);
  await agent.close();
  await connecting;
});

test('what runs while the agent leaves is finished and delivered over a connection that was lost meanwhile', async () => {
  const work = gate();
  const { mesh, agent } = await agentOn();
  agent.onMessage(async () => {
    await work.opened;
    return 'done';
  });
  await agent.connect();
  mesh.welcome = { resumed: true };
  const running = mesh.dispatch('work');
  await mesh.frame('dispatch_ack', running);
  const closed = agent.close(60);
  await mesh.frame('close_request');
  mesh.sockets[0]?.terminate();
  expect((await mesh.frame('hello', undefined, 2)).payload).toMatchObject({
    resume_token: 'resume-1',
    inflight: [{ dispatch_id: `dsp_${running}` }],
  });
  const again = await mesh.frame('close_request', undefined, 2);
  expect(again.payload.grace_seconds).toBeLessThanOrEqual(60);
  expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('draining');
  work.open();
  expect((await mesh.frame('dispatch_result', running)).payload.status).toEqual({ state: 'completed' });
  await closed;
  expect(mesh.sockets).toHaveLength(2);
});

test('an answer that may be lost with its connection is delivered before the agent leaves', async () => {
  const { mesh, agent } = await agentOn();
  agent.onMessage(() => 'done');
  await agent.connect();
  mesh.welcome = { resumed: true };
  mesh.keepsIdleOpen = true;
  const id = mesh.dispatch('work');
  await mesh.frame('dispatch_result', id);
  const closed = agent.close(60);
  await mesh.frame('close_request');
  mesh.keepsIdleOpen = false;
  mesh.sockets[0]?.terminate();
  await mesh.frame('dispatch_result', id, 2);
  await closed;
  expect(mesh.sockets).toHaveLength(2);
});

test('an agent that is away with nothing to deliver leaves at once', async () => {
  const { mesh, agent, lost } = await agentOn();
  await agent.connect();
  mesh.onUpgrade = () => true;
  mesh.sockets[0]?.terminate();
  await until(() => lost.length > 0, { what: 'the loss' });
  await until(() => mesh.tokensOffered.length === 2, { what: 'a handshake that hangs' });
  await agent.close(600);
  expect(mesh.sockets).toHaveLength(1);
});

test('a new token while the agent leaves goes on where it was', async () => {
  const work = gate();
  const { mesh, agent } = await agentOn((server) => {
    server.tokenLifetimeSeconds = 2;
  });
  agent.onMessage(async () => {
    await work.opened;
    return 'done';
  });
  await agent.connect();
  mesh.welcome = { resumed: true };
  mesh.tokenLifetimeSeconds = 3_600;
  const running = mesh.dispatch('work');
  await mesh.frame('dispatch_ack', running);
  const closed = agent.close(60);
  await mesh.frame('close_request', undefined, 2);
  expect(mesh.tokensOffered).toEqual(['token-1', 'token-2']);
  work.open();
  await mesh.frame('dispatch_result', running);
  await closed;
});

test('an orderly stop is no trouble, and what the agent reports meanwhile does not bring it new work', async () => {
  const work = gate();
  const { mesh, agent, lines, errors } = await agentOn();
  agent.onMessage(async () => {
    await work.opened;
    agent.reportStatus('available');
    return 'done';
  });
  await agent.connect();
  const running = mesh.dispatch('work');
  await mesh.frame('dispatch_ack', running);
  const closed = agent.close();
  await mesh.frame('close_request');
  work.open();
  await closed;
  expect(mesh.of('heartbeat').map(({ payload }) => payload.status)).toEqual(['available', 'draining']);
  expect({ lines, errors }).toEqual({ lines: [], errors: [] });
});

test('without a new token the connection stays until there is one', async () => {
  const { mesh, agent, lines } = await agentOn((server) => {
    server.tokenLifetimeSeconds = 1;
  });
  await agent.connect();
  mesh.refusals.set('/auth/get_token', { status: 503, body: { error: 'Try again.', code: 'SERVICE_UNAVAILABLE' } });
  await until(() => lines.length > 0, { what: 'a warning' });
  expect(lines).toMatchObject([{ level: 'warn', code: 'SERVICE_UNAVAILABLE' }]);
  expect(mesh.sockets.map((socket) => socket.readyState)).toEqual([1]);
  mesh.refusals.clear();
  mesh.welcome = { resumed: true };
  expect((await mesh.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
});

test('the end of the grace ends an agent that cannot come back', async () => {
  const { mesh, agent } = await agentOn();
  const reasons: string[] = [];
  agent.onMessage(async (task) => {
    await once(task.signal, 'abort');
    reasons.push((task.signal.reason as Error).message);
  });
  await agent.connect();
  await mesh.frame('dispatch_ack', mesh.dispatch('work'));
  mesh.onUpgrade = () => true;
  const closed = agent.close(1);
  await mesh.frame('close_request');
  mesh.sockets[0]?.terminate();
  await closed;
  await vi.waitFor(() => expect(reasons).toEqual(['AGENT_DISCONNECTED']));
});

test('a listener that throws does not end the agent', async () => {
  const { mesh, agent, errors, lines } = await agentOn();
  agent.on('connected', () => {
    throw new Error('a bug of the caller');
  });
  agent.on('disconnected', async () => {
    throw new Error('another one');
  });
  await agent.connect();
  mesh.sockets[0]?.terminate();
  await mesh.frame('hello', undefined, 2);
  await vi.waitFor(() => {
    const listenerErrors = errors.filter((error) => (error as Error & { code?: string }).code === 'LISTENER_FAILED');
    expect(listenerErrors.map(({ message }) => message)).toEqual([
      expect.stringContaining('a bug of the caller'),
      expect.stringContaining('another one'),
    ]);
  });
  expect(lines.filter(({ code }) => code === 'LISTENER_FAILED')).toHaveLength(2);
});

test('an onError that throws does not end the agent', async () => {
  const thrower = () => {
    throw new Error('a bug of the caller');
  };
  const { mesh, agent } = await agentOn(() => undefined, { onError: thrower });
  await agent.connect();
  mesh.sockets[0]?.terminate();
  await mesh.frame('hello', undefined, 2);
  expect(mesh.of('hello')).toHaveLength(2);
});

async function spawnAgents(mesh: MeshServer, types: string) {
  const environment = { ...process.env, FLEET_BASE_URL: mesh.baseUrl, FLEET_TOKEN: 'given-1', TEST_CA: mesh.ca };
  const child = spawn(process.execPath, [new URL('./agent-process.mjs', import.meta.url).pathname], {
    env: { ...environment, TEST_TYPES: types },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  await mesh.frame('heartbeat', undefined, types.split(',').length);
  return { child, exited: once(child, 'exit'), stderr: () => stderr };
}

test.each([
  ['REPLACED', 4409],
  ['DEREGISTERED', 4410],
])('a process that %s ends, with nobody who watches it, says why and ends with 1', async (code, closeCode) => {
  const mesh = await MeshServer.start();
  const { exited, stderr } = await spawnAgents(mesh, 'worker');
  mesh.send('error', { code, message: 'over', retryable: false });
  mesh.sockets[0]?.close(closeCode);
  expect(await exited).toEqual([1, null]);
  expect(stderr()).toMatch(new RegExp(`^agent worker: joined the platform [^\\n]*\\n[^\\n]*${code}[^\\n]*\\n$`));
});

test('a process whose agent is refused after its first connection says why and ends with 1', async () => {
  const mesh = await MeshServer.start();
  const { exited, stderr } = await spawnAgents(mesh, 'worker');
  const body = { error: 'Agents of the type worker may not join this tenant.', code: 'forbidden' };
  mesh.onUpgrade = (socket) => socket.end(refusedUpgrade({ status: 403, body })) !== undefined;
  mesh.sockets[0]?.terminate();
  expect(await exited).toEqual([1, null]);
  expect(stderr()).toContain('may not join this tenant');
});

test('on SIGTERM the process lives until the last of its agents has finished', async () => {
  const mesh = await MeshServer.start();
  const { child, exited } = await spawnAgents(mesh, 'idle,worker');
  const idleLeft = once(mesh.sockets[0] as object as NodeJS.EventEmitter, 'close');
  const running = mesh.dispatch('work');
  const waiting = await mesh.frame('tool_call');
  child.kill('SIGTERM');
  await idleLeft;
  await mesh.frame('close_request', undefined, 2);
  // A process that goes with the first of its agents is gone before these are answered.
  for (let round = 0; round < 50; round += 1) await mesh.frame('pong', mesh.send('ping', {}));
  mesh.send('tool_result', { ok: true, result: null }, { inReplyTo: waiting.id });
  expect((await mesh.frame('dispatch_result', running)).payload).toMatchObject({ status: { state: 'completed' } });
  expect(await exited).toEqual([null, 'SIGTERM']);
});
