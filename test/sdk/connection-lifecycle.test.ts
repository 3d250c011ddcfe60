import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Agent } from '../../sdk/index.js';
import { gate, until } from '../setup/until.js';
import { agentOn, codeOf, joined } from './agents.js';
import { MeshServer, type Refusal, refusedUpgrade } from './mesh-server.js';

/** An agent with a task that runs until `work` opens. */
async function atWork(change: (mesh: MeshServer) => void = () => undefined) {
  const work = gate();
  const made = await joined(
    (agent) =>
      agent.onMessage(async () => {
        await work.promise;
        agent.reportStatus('available');
        return 'done';
      }),
    {},
    change,
  );
  const running = made.mesh.dispatch('work');
  await made.mesh.frame('dispatch_ack', running);
  return { ...made, work, running };
}

const REGISTER = '/agents/register';
const refuses = (refusal: Refusal) => (mesh: MeshServer) => {
  mesh.onUpgrade = (socket) => socket.end(refusedUpgrade(refusal)) !== undefined;
};

test('an agent that was deregistered stays away', async () => {
  const { mesh, agent, lines, errors } = await joined(() => undefined);
  const { closed } = agent;
  mesh.send('error', { code: 'DEREGISTERED', message: 'deregistered by the caller', retryable: false });
  mesh.sockets[0]?.close(4410);
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  expect(mesh.count(REGISTER)).toBe(1);
  expect(lines).toMatchObject([{ level: 'error', code: 'DEREGISTERED' }]);
  expect(errors).toMatchObject([{ code: 'DEREGISTERED' }]);
});

test('a mesh that says no welcome is left and tried again, without registering anew', async () => {
  const { mesh, agent, lines } = await agentOn(
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
  expect(mesh.count(REGISTER)).toBe(1);
});

test.each([
  [2, 1],
  [3, 2], // it may be elsewhere: the agent asks again
])('after %d handshakes without an answer an agent has registered %d times', async (silent, registrations) => {
  const { mesh, agent } = await agentOn(
    (server) => {
      server.onUpgrade = () => server.tokensOffered.length <= silent;
    },
    { handshakeTimeoutMs: 200 },
  );
  await agent.connect();
  expect(mesh.tokensOffered).toHaveLength(silent + 1);
  expect(mesh.count(REGISTER)).toBe(registrations);
});

const UNKNOWN = { status: 404, body: { error: 'not here', code: 'INSTANCE_NOT_FOUND' } };
/** The mesh does not know the agent: it ends its connection, or refuses the next one. */
const forgets: Record<string, (mesh: MeshServer) => void> = {
  'by its socket': (mesh) => mesh.sockets[0]?.close(1008),
  'by a handshake': (mesh) => {
    mesh.onUpgrade = (socket) => {
      mesh.onUpgrade = () => false;
      return socket.end(refusedUpgrade(UNKNOWN)) !== undefined;
    };
    mesh.sockets[0]?.terminate();
  },
};

test.each([
  ['by its socket', 'DEREGISTERED', 1],
  ['by its socket', 'NOT_FOUND', 2],
  ['by a handshake', 'NOT_FOUND', 2],
])('one that is forgotten %s asks first whether it is still wanted: %s, %d registrations', async (how, code, count) => {
  const { mesh, agent } = await joined(() => undefined);
  const { closed } = agent;
  mesh.refusals.set('/agents/heartbeat', { status: 404, body: { error: 'not here', code } });
  forgets[how]?.(mesh);
  if (code === 'NOT_FOUND') await mesh.frame('hello', undefined, 2);
  else await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code });
  expect(mesh.count(REGISTER)).toBe(count);
});

test.each([
  ['the mesh', 503, 'SERVICE_UNAVAILABLE', 1],
  ['the mesh', 429, 'RATE_LIMITED', 1],
  ['/auth/get_token', 429, '', 0],
  [REGISTER, 429, '', 1],
])('Retry-After of %s with %d is the least wait', async (where, status, code, registrations) => {
  const refusal = {
    status,
    body: { error: 'too many', code: code || 'RATE_LIMITED' },
    headers: { 'retry-after': '40' },
  };
  const atApi = (server: MeshServer) => server.refusals.set(where, refusal);
  const { mesh, agent, lost } = await agentOn(where === 'the mesh' ? refuses(refusal) : atApi);
  const connecting = agent.connect();
  await until(() => lost.length > 0, { what: 'the refusal' });
  expect(lost[0]).toMatchObject({ code });
  expect(lost[0]?.retryInMs).toBeGreaterThanOrEqual(40_000);
  await agent.close();
  await connecting;
  expect(mesh.count(REGISTER)).toBe(registrations);
});

test('what runs while the agent leaves is finished and delivered over a connection that was lost meanwhile', async () => {
  const { mesh, agent, work, running } = await atWork();
  mesh.welcome = { resumed: true };
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
  expect((await mesh.result(running)).status).toEqual({ state: 'completed' });
  await closed;
  expect(mesh.sockets).toHaveLength(2);
});

test('the grace is the agent’s own, at close() and for signals', async () => {
  const { mesh, agent } = await joined(() => undefined, { drainGraceSeconds: 600 });
  const closed = agent.close();
  const { grace_seconds: grace } = (await mesh.frame('close_request')).payload;
  expect(grace).toBeGreaterThan(500);
  await closed;
  for (const drainGraceSeconds of [-1, 3_601, Number.NaN])
    expect(() => new Agent({ type: 'shop', drainGraceSeconds })).toThrow(
      'drainGraceSeconds is a number from 0 to 3600',
    );
});

test('an answer that may be lost with its connection is delivered before the agent leaves', async () => {
  const { mesh, agent } = await joined((shop) => shop.onMessage(() => 'done'));
  mesh.welcome = { resumed: true };
  mesh.keepsIdleOpen = true;
  const id = mesh.dispatch('work');
  await mesh.result(id);
  const closed = agent.close(60);
  await mesh.frame('close_request');
  mesh.keepsIdleOpen = false;
  mesh.sockets[0]?.terminate();
  await mesh.result(id, 2);
  await closed;
  expect(mesh.sockets).toHaveLength(2);
});

test('an agent that is away with nothing to deliver leaves at once', async () => {
  const { mesh, agent, lost } = await joined(() => undefined);
  mesh.onUpgrade = () => true;
  mesh.sockets[0]?.terminate();
  await until(() => lost.length > 0, { what: 'the loss' });
  await until(() => mesh.tokensOffered.length === 2, { what: 'a handshake that hangs' });
  await agent.close(600);
  expect(mesh.sockets).toHaveLength(1);
});

test('a new token while the agent leaves goes on where it was', async () => {
  const { mesh, agent, work, running } = await atWork((server) => {
    server.tokenLifetimeSeconds = 2;
  });
  mesh.welcome = { resumed: true };
  mesh.tokenLifetimeSeconds = 3_600;
  const closed = agent.close(60);
  await mesh.frame('close_request', undefined, 2);
  expect(mesh.tokensOffered).toEqual(['token-1', 'token-2']);
  work.open();
  await mesh.result(running);
  await closed;
});

test('an orderly stop is no trouble, and what the agent reports meanwhile does not bring it new work', async () => {
  const { mesh, agent, lines, errors, work } = await atWork();
  const closed = agent.close();
  expect((await mesh.frame('close_request')).payload.grace_seconds).toBe(30);
  work.open();
  await closed;
  expect(mesh.of('heartbeat').map(({ payload }) => payload.status)).toEqual(['available', 'draining']);
  expect({ lines, errors }).toEqual({ lines: [], errors: [] });
});

test('the end of the grace ends an agent that cannot come back', async () => {
  const codes: string[] = [];
  const { mesh, agent, lines } = await joined((shop) =>
    shop.onMessage(async (task) => {
      await once(task.signal, 'abort');
      codes.push(codeOf(task.signal));
    }),
  );
  await mesh.frame('dispatch_ack', mesh.dispatch('work'));
  mesh.onUpgrade = () => true;
  const closed = agent.close(1);
  await mesh.frame('close_request');
  mesh.sockets[0]?.terminate();
  await closed;
  await vi.waitFor(() => expect(codes).toEqual(['AGENT_DISCONNECTED']));
  expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', dispatches: 1 }));
});

test('a listener that throws does not end the agent, nor does an onError that throws', async () => {
  const reported: (Error & { code?: string })[] = [];
  const onError = (error: Error) => {
    reported.push(error);
    throw new Error('a third one');
  };
  const { mesh, lines } = await joined(
    (agent) =>
      agent
        .on('connected', () => {
          throw new Error('a bug of the caller');
        })
        .on('disconnected', async () => {
          throw new Error('another one');
        }),
    { onError },
  );
  mesh.sockets[0]?.terminate();
  await mesh.frame('hello', undefined, 2);
  const thrown = ['a bug of the caller', 'another one'].map((text) => expect.stringContaining(text));
  await vi.waitFor(() => {
    const failed = reported.filter(({ code }) => code === 'LISTENER_FAILED');
    expect(failed.map(({ message }) => message).slice(0, 2)).toEqual(thrown);
  });
  expect(lines.filter(({ code }) => code === 'LISTENER_FAILED').length).toBeGreaterThanOrEqual(2);
});

test('tells when it is connected and when it is not', async () => {
  const events: unknown[] = [];
  const { mesh } = await joined((agent) =>
    agent
      .on('connected', (detail) => events.push(detail))
      .on('disconnected', ({ retryInMs }) => events.push(retryInMs > 0)),
  );
  mesh.sockets[0]?.terminate();
  await mesh.frame('hello', undefined, 2);
  await vi.waitFor(() => expect(events).toHaveLength(3));
  const connected = { instanceId: 'shop-1', meshId: 'mesh_1', resumed: false };
  expect(events).toEqual([connected, true, connected]);
});

async function spawnAgents(types: string) {
  const mesh = await MeshServer.start();
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
  return { mesh, child, exited: once(child, 'exit'), stderr: () => stderr };
}

const over = (text: string) =>
  new RegExp(
    `^agent worker: joined the platform [^\\n]*\\n(agent [^\\n]*trying again[^\\n]*\\n)?[^\\n]*${text}[^\\n]*\\n$`,
  );

test.each<[string, string, (mesh: MeshServer) => void]>([
  ['is replaced', 'REPLACED', (mesh) => mesh.sockets[0]?.close(4409)],
  [
    'is refused after its first connection',
    'may not join this tenant',
    (mesh) => {
      refuses({ status: 403, body: { error: 'Agents of this type may not join this tenant.', code: 'forbidden' } })(
        mesh,
      );
      mesh.sockets[0]?.terminate();
    },
  ],
])('a process whose agent %s, with nobody who watches it, says why and ends with 1', async (_what, reason, end) => {
  const { mesh, exited, stderr } = await spawnAgents('worker');
  end(mesh);
  expect(await exited).toEqual([1, null]);
  expect(stderr()).toMatch(over(reason));
});

test('on SIGTERM the process lives until the last of its agents has finished', async () => {
  const { mesh, child, exited } = await spawnAgents('idle,worker');
  const idleLeft = once(mesh.sockets[0] as object as NodeJS.EventEmitter, 'close');
  const running = mesh.dispatch('work');
  const waiting = await mesh.frame('tool_call');
  child.kill('SIGTERM');
  await idleLeft;
  await mesh.frame('close_request', undefined, 2);
  expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('draining');
  // A process that goes with the first of its agents is gone before these are answered.
  for (let round = 0; round < 50; round += 1) await mesh.frame('pong', mesh.send('ping', {}));
  mesh.send('tool_result', { ok: true, result: null }, { inReplyTo: waiting.id });
  expect((await mesh.result(running)).status).toEqual({ state: 'completed' });
  expect(await exited).toEqual([null, 'SIGTERM']);
});
