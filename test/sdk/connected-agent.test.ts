import { expect, onTestFinished, test, vi } from 'vitest';
import type { DispatchChunkPayload, DispatchResultPayload } from '../../contracts/frames.js';
import { fits } from '../../messages/accept/destination.js';
import { Agent, type AgentOptions, type AgentTask, type MessageHandler } from '../../sdk/index.js';
import { MeshServer } from './mesh-server.js';

async function connect(
  onMessage: MessageHandler,
  options: Partial<AgentOptions> = {},
  prepare: (mesh: MeshServer) => void = () => undefined,
): Promise<{ mesh: MeshServer; agent: Agent }> {
  const mesh = await MeshServer.start();
  prepare(mesh);
  const agent = new Agent({
    url: mesh.baseUrl,
    ca: mesh.ca,
    clientId: 'cred_1',
    clientSecret: 'secret',
    type: 'echo',
    instanceId: 'echo-1',
    ...options,
  }).onMessage(onMessage);
  onTestFinished(() => agent.close(0).catch(() => undefined)); // a test may have ended it with an error
  await agent.connect();
  return { mesh, agent };
}

const chunks = (mesh: MeshServer, id: string) =>
  mesh.of('dispatch_chunk', id).map((frame) => frame.payload as unknown as DispatchChunkPayload);
const seqs = (mesh: MeshServer, id: string) => chunks(mesh, id).map((chunk) => chunk.seq);
const resultOf = async (mesh: MeshServer, id: string, count = 1) =>
  (await mesh.frame('dispatch_result', id, count)).payload as unknown as DispatchResultPayload;

/** A promise that a handler waits for, and what ends it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test.each([
  ['takes files of any type', {}, true],
  ['takes what it names only', { card: { defaultInputModes: ['text/plain'] } }, false],
])('by its card an agent %s', async (_what, options, takes) => {
  const { mesh } = await connect(() => undefined, options);
  const card = mesh.requests.find(({ path }) => path === '/agents/register')?.body.agent_card as {
    defaultInputModes: string[];
  };
  expect(fits({ input: card.defaultInputModes, output: [] }, { input: ['image/png'], output: [] })).toBe(takes);
});

test('registers, says hello, streams in order and ends with the streamed text', async () => {
  const { mesh, agent } = await connect(async (task) => {
    await task.status('thinking');
    for (const word of task.text.split(' ')) await task.stream(`${word} `);
    return undefined;
  });
  expect(mesh.requests.map((request) => request.path)).toEqual(['/auth/get_token', '/agents/register']);
  expect(mesh.requests[0]?.body.agent_type).toBe('echo');
  expect((await mesh.frame('hello')).payload).toMatchObject({ instance_id: 'echo-1', inflight: [] });
  expect(agent.instanceId).toBe('echo-1');

  const id = mesh.dispatch('one two three');
  expect(await resultOf(mesh, id)).toMatchObject({
    chunk_count: 4,
    status: { state: 'completed' },
    result: {
      kind: 'task',
      id: 'msg_1',
      artifacts: [{ artifactId: id, parts: [{ kind: 'text', text: 'one two three ' }] }],
    },
  });
  expect(seqs(mesh, id)).toEqual([0, 1, 2, 3]);
  expect(chunks(mesh, id)[0]?.status_text).toBe('thinking');
  expect(mesh.of('dispatch_ack', id)).toHaveLength(1);
});

test('asks with an input request and reads the resolution when the message comes back', async () => {
  const { mesh } = await connect(async (task) =>
    task.resolution
      ? `you said ${task.resolution.resolution}`
      : task.ask({ kind: 'confirmation', title: 'Sure?', prompt: 'Go on?', tool: 'restart' }),
  );
  const asked = await resultOf(mesh, mesh.dispatch('restart'));
  expect(asked.status).toEqual({
    state: 'input-required',
    input_request: { kind: 'confirmation', title: 'Sure?', prompt: 'Go on?', tool: 'restart' },
  });
  const resolution = { request_id: 'req_1', resolution: 'confirmed' };
  const answered = await resultOf(mesh, mesh.dispatch('restart', { metadata: { resolution } }));
  expect(answered.result).toMatchObject({ artifacts: [{ parts: [{ text: 'you said confirmed' }] }] });
});

test('a handler that throws, and an answer larger than a frame, end the dispatch with HANDLER_ERROR', async () => {
  const { mesh } = await connect(async (task) => {
    if (task.text === 'throw') throw new Error('no luck');
    return 'x'.repeat(2 * 1024 * 1024);
  });
  const thrown = await mesh.frame('error', mesh.dispatch('throw'));
  expect(thrown.payload).toMatchObject({ code: 'HANDLER_ERROR', message: 'no luck' });
  const large = await mesh.frame('error', mesh.dispatch('large'));
  expect(large.payload.code).toBe('HANDLER_ERROR');
});

test('after a resume sends all held chunks again in order, and the answer that was made while away', async () => {
  const away = gate();
  const runs: string[] = [];
  const { mesh } = await connect(async (task) => {
    runs.push(task.dispatchId);
    await task.stream('before ');
    await away.opened;
    await task.stream('after');
    return undefined;
  });
  const id = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', id);
  mesh.welcome = { resumed: true };
  mesh.sockets[0]?.terminate();
  away.open();
  const hello = await mesh.frame('hello', undefined, 2);
  expect(hello.payload).toMatchObject({
    resume_token: 'resume-1',
    inflight: [{ dispatch_id: `dsp_${id}`, last_seq: -1 }],
  });
  const result = await resultOf(mesh, id);
  expect(result.result).toMatchObject({ artifacts: [{ parts: [{ text: 'before after' }] }] });
  expect(seqs(mesh, id)).toEqual([0, 0, 1]);

  mesh.dispatch('go', { id });
  await resultOf(mesh, id, 2);
  expect(runs).toEqual([`dsp_${id}`]);
});

test('what a model streamed into a connection that had died silently comes again as a whole', async () => {
  const silent = gate();
  const { mesh } = await connect(async (task) => {
    for (let index = 0; index < 2_000; index += 1) await task.stream('word ');
    await silent.opened;
    return undefined;
  });
  const id = mesh.dispatch('go');
  await vi.waitFor(() => expect(mesh.of('dispatch_chunk', id)).toHaveLength(2_000), 10_000);
  mesh.welcome = { resumed: true };
  mesh.sockets[0]?.terminate();
  silent.open();
  expect((await mesh.frame('hello', undefined, 2)).payload.inflight).toMatchObject([{ last_seq: -1 }]);
  expect(await resultOf(mesh, id)).toMatchObject({ chunk_count: 2_000 });
  expect(seqs(mesh, id)).toHaveLength(4_000);
});

test('as many answers as may be in flight are held, when none of them is known to have arrived', async () => {
  const { mesh } = await connect(async (task) => task.text);
  const ids = Array.from({ length: 200 }, (_, index) => mesh.dispatch(String(index), { messageId: `msg_${index}` }));
  await vi.waitFor(() => expect(mesh.of('dispatch_result')).toHaveLength(200), 10_000);
  mesh.welcome = { resumed: true };
  mesh.sockets[0]?.terminate();
  const hello = await mesh.frame('hello', undefined, 2);
  expect(new Set((hello.payload.inflight as { dispatch_id: string }[]).map((each) => each.dispatch_id))).toEqual(
    new Set(ids.map((id) => `dsp_${id}`)),
  );
});

test('a reconnect that is not resumed gives up what was running and sends nothing of it', async () => {
  const tasks: AgentTask[] = [];
  const stuck = gate();
  const { mesh } = await connect(async (task) => {
    tasks.push(task);
    if (task.text === 'stuck') await stuck.opened;
    return 'done';
  });
  const lost = mesh.dispatch('stuck');
  await mesh.frame('dispatch_ack', lost);
  mesh.sockets[0]?.terminate();
  await mesh.frame('hello', undefined, 2);
  await vi.waitFor(() => expect(tasks[0]?.signal.aborted).toBe(true));
  expect(tasks[0]?.signal.reason).toEqual(new Error('AGENT_DISCONNECTED'));
  stuck.open();
  await resultOf(mesh, mesh.dispatch('next'));
  expect(mesh.of('dispatch_result', lost)).toHaveLength(0);
});

test('a cancel aborts the task and its answer is not sent', async () => {
  const reasons: string[] = [];
  const { mesh } = await connect(async (task) => {
    if (task.text !== 'wait') return 'done';
    await new Promise<void>((resolve) => task.signal.addEventListener('abort', () => resolve()));
    reasons.push((task.signal.reason as Error).message);
    await task.stream('too late');
    return 'too late';
  });
  const id = mesh.dispatch('wait');
  await mesh.frame('dispatch_ack', id);
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: id });
  await vi.waitFor(() => expect(reasons).toEqual(['CANCELED']));
  await resultOf(mesh, mesh.dispatch('next'));
  expect(mesh.of('dispatch_result', id)).toHaveLength(0);
  expect(mesh.of('dispatch_chunk', id)).toHaveLength(0);
});

test('aborts a task at its deadline', async () => {
  const reasons: string[] = [];
  const { mesh } = await connect(async (task) => {
    await new Promise<void>((resolve) => task.signal.addEventListener('abort', () => resolve()));
    reasons.push((task.signal.reason as Error).message);
    return undefined;
  });
  mesh.dispatch('wait', { deadlineMs: 20 });
  await vi.waitFor(() => expect(reasons).toEqual(['DEADLINE_EXCEEDED']));
});

test('stops with a clear error when another process takes its place', async () => {
  const { mesh, agent } = await connect(async () => 'done');
  mesh.send('error', { code: 'REPLACED', message: 'a newer connection', retryable: false });
  mesh.sockets[0]?.close(4409);
  await expect(agent.closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'REPLACED' });
  expect(mesh.sockets).toHaveLength(1);
});

test('gets a new token when the handshake answers 401', async () => {
  const { mesh } = await connect(
    async () => 'done',
    {},
    (server) => server.refusedTokens.add('token-1'),
  );
  expect(mesh.tokensOffered).toEqual(['token-1', 'token-2']);
});

test('reconnects with a new token before the old one ends, and resumes', async () => {
  const { mesh } = await connect(
    async () => 'done',
    {},
    (server) => {
      server.tokenLifetimeSeconds = 1;
    },
  );
  mesh.welcome = { resumed: true };
  expect((await mesh.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
  expect(mesh.tokensOffered.slice(0, 2)).toEqual(['token-1', 'token-2']);
});

test('heartbeats, answers pings and ignores frames it does not know', async () => {
  const { mesh, agent } = await connect(
    async () => 'done',
    { maxConcurrentSessions: 3 },
    (server) => {
      server.welcome = { heartbeat_interval_ms: 20, ping_interval_ms: 20 };
    },
  );
  expect((await mesh.frame('heartbeat', undefined, 3)).payload).toMatchObject({
    instance_id: 'echo-1',
    status: 'available',
    max_concurrent_sessions: 3,
  });
  agent.reportStatus('unhealthy');
  await vi.waitFor(() => expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('unhealthy'));
  mesh.send('weather_report', { sunny: true });
  const ping = mesh.send('ping', { nonce: 'n1' });
  expect((await mesh.frame('pong', ping)).payload).toEqual({ nonce: 'n1' });
  await mesh.frame('ping', undefined, 5);
  expect(mesh.sockets).toHaveLength(1);
});

test('close finishes what is running, and what crossed the request, then leaves with 1000', async () => {
  const work = gate();
  const { mesh, agent } = await connect(async () => {
    await work.opened;
    return 'done';
  });
  const running = mesh.dispatch('work');
  await mesh.frame('dispatch_ack', running);
  const closeCode = new Promise((resolve) => mesh.sockets[0]?.on('close', resolve));
  const closed = agent.close();
  expect((await mesh.frame('close_request')).payload.grace_seconds).toBe(30);
  const crossed = mesh.dispatch('more');
  await mesh.frame('dispatch_ack', crossed);
  work.open();
  for (const id of [running, crossed]) expect((await resultOf(mesh, id)).status?.state).toBe('completed');
  await closed;
  expect(await closeCode).toBe(1000);
});

test('a dispatch that comes before an idle agent has left is not lost', async () => {
  const { mesh, agent } = await connect(async () => 'done');
  mesh.keepsIdleOpen = true;
  const closed = agent.close();
  await mesh.frame('close_request');
  const late = mesh.dispatch('late');
  mesh.keepsIdleOpen = false;
  expect((await resultOf(mesh, late)).status?.state).toBe('completed');
  await closed;
});

test('a new token waits for tool calls under way', async () => {
  const shortLived = (server: MeshServer) => {
    server.tokenLifetimeSeconds = 2;
  };
  const { mesh, agent } = await connect(async () => 'done', {}, shortLived);
  const answer = agent.callTool('slow');
  const call = await mesh.frame('tool_call');
  const { mesh: other } = await connect(async () => 'done', {}, shortLived);
  await vi.waitFor(() => expect(other.sockets).toHaveLength(2), { timeout: 10_000 }); // so the first one's time has come too
  expect(mesh.sockets).toHaveLength(1);
  mesh.send('tool_result', { ok: true, result: 'late' }, { inReplyTo: call.id });
  expect(await answer).toBe('late');
  await vi.waitFor(() => expect(mesh.sockets).toHaveLength(2), { timeout: 10_000 });
});

test('streams more than the connection takes at once without a gap', async () => {
  const piece = 'x'.repeat(10_000);
  const { mesh } = await connect(async (task) => {
    for (let index = 0; index < 90; index += 1) await task.stream(piece);
    return undefined;
  });
  const id = mesh.dispatch('much');
  expect((await resultOf(mesh, id)).chunk_count).toBe(90);
  expect(seqs(mesh, id)).toEqual(Array.from({ length: 90 }, (_, index) => index));
});
