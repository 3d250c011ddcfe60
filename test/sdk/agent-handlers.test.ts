import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Agent, type AgentOptions, type AgentTask, ToolError, z } from '../../sdk/index.js';
import { MeshServer } from './mesh-server.js';

async function joined(prepare: (agent: Agent) => void, options: Partial<AgentOptions> = {}) {
  const mesh = await MeshServer.start();
  const agent = new Agent({
    url: mesh.baseUrl,
    ca: mesh.ca,
    clientId: 'cred_1',
    clientSecret: 'secret',
    type: 'shop',
    instanceId: 'shop-1',
    drainOnSignals: false,
    ...options,
  });
  prepare(agent);
  onTestFinished(() => agent.close(0).catch(() => undefined));
  await agent.connect();
  return { mesh, agent };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

const delivery = (tool: string, args: object, more: object = {}) => ({
  tool,
  arguments: args,
  dispatch_id: 'call_1',
  session_id: 'ses_1',
  deadline_ms: 10_000,
  idempotency_key: 'key-1',
  caller: { agent_type: 'clerk', instance_id: 'clerk-1' },
  ...more,
});

test('an async generator streams what it yields, and what it returns is its end', async () => {
  const { mesh } = await joined((agent) =>
    agent.onMessage(async function* (task: AgentTask) {
      yield 'one ';
      yield [{ kind: 'text', text: 'two ' }];
      yield { kind: 'data', data: { three: 3 } };
      if (task.text === 'ask') return task.ask({ kind: 'approval', title: 'More?', prompt: 'Shall I go on?' });
    }),
  );
  const dispatchId = mesh.dispatch('tell');
  const result = (await mesh.frame('dispatch_result', dispatchId)).payload;
  expect(result).toMatchObject({
    chunk_count: 3,
    status: { state: 'completed' },
    result: { artifacts: [{ parts: [{ text: 'one two ' }, { data: { three: 3 } }] }] },
  });
  const asked = (await mesh.frame('dispatch_result', mesh.dispatch('ask'))).payload;
  expect(asked.status).toMatchObject({ state: 'input-required', input_request: { title: 'More?' } });
});

test('a generator that throws fails the dispatch; one that is canceled is ended and cleans up', async () => {
  const cleaned: string[] = [];
  const { mesh } = await joined((agent) =>
    agent.onMessage(async function* (task) {
      try {
        yield 'begun';
        if (task.text === 'throw') throw new Error('no luck');
        await aborted(task.signal);
        yield 'too late';
      } finally {
        cleaned.push(task.text);
      }
    }),
  );
  const thrown = mesh.dispatch('throw');
  expect((await mesh.frame('error', thrown)).payload).toMatchObject({ code: 'HANDLER_ERROR', message: 'no luck' });
  const canceled = mesh.dispatch('wait');
  await mesh.frame('dispatch_chunk', canceled);
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: canceled });
  await vi.waitFor(() => expect(cleaned).toEqual(['throw', 'wait']));
  expect(mesh.of('dispatch_chunk', canceled)).toHaveLength(1);
});

test('task.stream takes a source and streams each of its pieces', async () => {
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      await task.stream(
        (async function* () {
          yield 'a';
          yield 'b';
        })(),
      );
    }),
  );
  const id = mesh.dispatch('go');
  expect((await mesh.frame('dispatch_result', id)).payload.chunk_count).toBe(2);
});

test('a source that task.stream reads is left when its task is canceled', async () => {
  let given = 0;
  let isLeft = false;
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      await task.stream(
        (async function* () {
          try {
            for (; ; given += 1)
              yield* [`${given} `, await new Promise<string>((resolve) => setImmediate(resolve, ''))];
          } finally {
            isLeft = true;
          }
        })(),
      );
    }),
  );
  const id = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', id);
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: id });
  await vi.waitFor(() => expect(isLeft).toBe(true));
});

test('a skill gets its messages with the input that its schema read, and the platform learns of it', async () => {
  const { mesh } = await joined((agent) =>
    agent
      .skill(
        { id: 'sum', description: 'Adds up', input: z.object({ a: z.number(), b: z.number() }) },
        (_task, { a, b }) => String(a + b),
      )
      .skill('shout', (task) => task.text.toUpperCase()),
  );
  const skills = [
    { id: 'sum', name: 'sum', description: 'Adds up', tags: [] },
    { id: 'shout', name: 'shout', description: '', tags: [] },
  ];
  expect(mesh.requests.at(-1)?.body).toMatchObject({ skills, agent_card: { name: 'shop', skills } });
  expect((await mesh.frame('hello')).payload.skills).toEqual(skills);
  const parts = [{ kind: 'data', data: { a: 2, b: 3 } }];
  const sum = (await mesh.frame('dispatch_result', mesh.dispatch('', { skillId: 'sum', parts }))).payload;
  expect(sum.result).toMatchObject({ artifacts: [{ parts: [{ text: '5' }] }] });
  const unfit = (await mesh.frame('error', mesh.dispatch('x', { skillId: 'sum' }))).payload;
  expect(unfit).toMatchObject({ code: 'INVALID_DISPATCH', message: expect.stringContaining('at a') });
  const shout = (await mesh.frame('dispatch_result', mesh.dispatch('hi', { skillId: 'shout' }))).payload;
  expect(shout.result).toMatchObject({ artifacts: [{ parts: [{ text: 'HI' }] }] });
  expect((await mesh.frame('error', mesh.dispatch('hi'))).payload.code).toBe('INVALID_DISPATCH');
  expect((await mesh.frame('error', mesh.dispatch('hi', { skillId: 'sing' }))).payload.code).toBe('INVALID_DISPATCH');
});

test('a card of one’s own keeps what the SDK declares', async () => {
  const own = { uri: 'https://example.com/own', required: false };
  const { mesh } = await joined((agent) => agent.onMessage(() => ''), {
    idempotent: true,
    card: { name: 'Corner shop', capabilities: { stateTransitionHistory: true, extensions: [own] } },
  });
  const registration = mesh.requests.find(({ path }) => path === '/agents/register');
  expect(registration?.body.agent_card).toMatchObject({
    name: 'Corner shop',
    capabilities: {
      streaming: true,
      stateTransitionHistory: true,
      extensions: [own, { params: { skills: ['*'] } }],
    },
  });
});

test('the files of a message, and its data as schemas of any kind read them', async () => {
  const order = { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] };
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      const [file, link] = task.files;
      const { count } = await task.data(order);
      const { item } = await task.data(z.object({ item: z.string() }));
      return `${file?.name} ${new TextDecoder().decode(file?.bytes)} ${link?.uri} ${link?.bytes} ${count} ${item}`;
    }),
  );
  const file = (file: object) => ({ kind: 'file', file });
  const attached = file({ name: 'a.txt', mimeType: 'text/plain', bytes: Buffer.from('été').toString('base64') });
  const parts = [attached, file({ uri: 'https://example.com/b' }), { kind: 'data', data: { count: 2, item: 'tea' } }];
  const answer = (await mesh.frame('dispatch_result', mesh.dispatch('', { parts }))).payload;
  expect(answer.result).toMatchObject({
    artifacts: [{ parts: [{ text: 'a.txt été https://example.com/b undefined 2 tea' }] }],
  });
  const unfit = (await mesh.frame('error', mesh.dispatch('', { parts: [attached] }))).payload;
  expect(unfit).toMatchObject({ code: 'INVALID_DISPATCH', message: expect.stringContaining('at count') });
});

test('what streamText and generateText of the AI SDK give is an answer, with what the model used', async () => {
  const used = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
  const words = async function* () {
    yield 'one ';
    yield 'two';
  };
  const { mesh } = await joined((agent) =>
    agent
      .skill('stream', () => ({
        textStream: words(),
        usage: Promise.resolve({ inputTokens: 1 }),
        totalUsage: Promise.resolve(used),
      }))
      .skill('web', () => ({ textStream: ReadableStream.from(words()) }))
      .skill('whole', async () => ({ text: 'one two', usage: used }))
      .skill('fail', () => ({ textStream: words(), totalUsage: Promise.reject(new Error('the model is away')) })),
  );
  const answer = async (skillId: string) =>
    (await mesh.frame('dispatch_result', mesh.dispatch('', { skillId }))).payload as Record<string, unknown>;
  const artifacts = [{ parts: [{ text: 'one two' }] }];
  const usage = { input_tokens: 3, output_tokens: 4 };
  expect(await answer('stream')).toMatchObject({ chunk_count: 2, usage, result: { artifacts } });
  expect(await answer('whole')).toMatchObject({ chunk_count: 0, usage, result: { artifacts } });
  const web = await answer('web');
  expect(web).toMatchObject({ chunk_count: 2, result: { artifacts } });
  expect(web).not.toHaveProperty('usage');
  expect((await mesh.frame('error', mesh.dispatch('', { skillId: 'fail' }))).payload).toMatchObject({
    code: 'HANDLER_ERROR',
    message: 'the model is away',
  });
});

test('a ToolError is built like an Error', () => {
  const cause = new Error('the cause');
  expect(new ToolError('no', { code: 'NOT_NOW', retryable: true, cause })).toMatchObject({
    name: 'ToolError',
    message: 'no',
    code: 'NOT_NOW',
    retryable: true,
    cause,
  });
  expect(new ToolError('no')).toMatchObject({ code: 'HANDLER_ERROR', retryable: false });
});

test('answers calls of its tools, and says why where it cannot', async () => {
  const Price = z.object({ item: z.string() }).describe('The price of an item');
  const { mesh } = await joined((agent) =>
    agent
      .tool('price', Price, ({ item }, call) => {
        if (item === 'moon') throw new ToolError('nobody sells it', { code: 'NOT_FOR_SALE', retryable: true });
        return { item, cents: 250, for: call.caller.agentType, session: call.sessionId, key: call.idempotencyKey };
      })
      .tool('nothing', z.object({}), () => undefined),
  );
  expect(mesh.requests.at(-1)?.body.tools).toEqual([
    {
      name: 'price',
      description: 'The price of an item',
      input_schema: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] },
    },
    { name: 'nothing', input_schema: { type: 'object', properties: {} } },
  ]);
  const call = async (tool: string, args: object) =>
    (await mesh.frame('tool_result', mesh.send('tool_call', delivery(tool, args)))).payload;
  expect(await call('price', { item: 'tea' })).toEqual({
    ok: true,
    result: { item: 'tea', cents: 250, for: 'clerk', session: 'ses_1', key: 'key-1' },
  });
  expect(await call('nothing', {})).toEqual({ ok: true, result: null });
  expect(await call('price', { item: 'moon' })).toEqual({
    ok: false,
    error: { code: 'NOT_FOR_SALE', message: 'nobody sells it', retryable: true },
  });
  expect(await call('price', { item: 7 })).toMatchObject({ ok: false, error: { code: 'BAD_REQUEST' } });
  expect(await call('sing', {})).toMatchObject({ ok: false, error: { code: 'TOOL_NOT_FOUND' } });
});

test('a tool call that is withdrawn, or lost with its socket, is aborted and not answered', async () => {
  const reasons: string[] = [];
  const { mesh } = await joined((agent) =>
    agent.tool('wait', z.object({}), async (_args, { signal }) => {
      await aborted(signal);
      reasons.push((signal.reason as ToolError).code);
      return 'late';
    }),
  );
  const withdrawn = mesh.send('tool_call', delivery('wait', {}));
  mesh.send('error', { code: 'CANCELED', message: 'not wanted', retryable: false }, { inReplyTo: withdrawn });
  await vi.waitFor(() => expect(reasons).toEqual(['CANCELED']));
  mesh.send('tool_call', delivery('wait', {}));
  mesh.send('ping', { nonce: 'after the call' });
  await mesh.frame('pong');
  mesh.sockets[0]?.terminate();
  await vi.waitFor(() => expect(reasons).toEqual(['CANCELED', 'AGENT_DISCONNECTED']));
  expect(mesh.of('tool_result')).toHaveLength(0);
});

test('a task calls tools as part of itself', async () => {
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      const price = await task.callTool(
        'price',
        { item: task.text },
        { target: { agentType: 'shop' }, deadlineMs: 500 },
      );
      return `it is ${(price as { cents: number }).cents}`;
    }),
  );
  const id = mesh.dispatch('tea');
  const call = await mesh.frame('tool_call');
  expect(call).toMatchObject({
    trace_id: '0af7651916cd43dd8448eb211c80319c',
    parent_span_id: 'b7ad6b7169203331',
    payload: {
      tool: 'price',
      arguments: { item: 'tea' },
      target: { agent_type: 'shop' },
      dispatch_id: `dsp_${id}`,
      deadline_ms: 500,
    },
  });
  mesh.send('tool_result', { ok: true, result: { cents: 250 } }, { inReplyTo: call.id });
  const result = (await mesh.frame('dispatch_result', id)).payload;
  expect(result.result).toMatchObject({ artifacts: [{ parts: [{ text: 'it is 250' }] }] });
});

test('a tool call that fails is a ToolError with its code and policy', async () => {
  const failures: unknown[] = [];
  const { mesh, agent } = await joined(() => undefined);
  const call = agent.callTool('refund', { order: 1 }).catch((error: unknown) => failures.push(error));
  const frame = await mesh.frame('tool_call');
  expect(frame.payload).toEqual({ tool: 'refund', arguments: { order: 1 } });
  const error = { code: 'POLICY_DENIED', message: 'not by you', policy_id: 'pol_1', retryable: false };
  mesh.send('tool_result', { ok: false, error }, { inReplyTo: frame.id });
  await call;
  expect(failures[0]).toBeInstanceOf(ToolError);
  expect(failures[0]).toMatchObject({ code: 'POLICY_DENIED', policyId: 'pol_1', retryable: false });
});

test('a tool call is withdrawn with its task and by its own signal, and fails with its connection', async () => {
  const reasons: unknown[] = [];
  const { mesh, agent } = await joined((shop) =>
    shop.onMessage(async (task) => {
      await task.callTool('slow').catch((error: unknown) => reasons.push((error as Error).message));
      return 'over';
    }),
  );
  const id = mesh.dispatch('go');
  const first = await mesh.frame('tool_call');
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: id });
  expect((await mesh.frame('error', first.id)).payload.code).toBe('CANCELED');
  await vi.waitFor(() => expect(reasons).toEqual(['CANCELED']));

  const own = new AbortController();
  const second = agent.callTool('slow', {}, { signal: own.signal }).catch((error: unknown) => error);
  const secondFrame = await mesh.frame('tool_call', undefined, 2);
  own.abort(new Error('changed my mind'));
  expect(await second).toEqual(new Error('changed my mind'));
  await mesh.frame('error', secondFrame.id);

  const third = agent.callTool('slow').catch((error: unknown) => error);
  await mesh.frame('tool_call', undefined, 3);
  mesh.sockets[0]?.terminate();
  expect(await third).toMatchObject({ code: 'AGENT_DISCONNECTED', retryable: false });
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

test('a token in place of a credential is used as it is, and the agent stops when it is refused', async () => {
  const credential = { clientId: undefined, clientSecret: undefined };
  const { mesh } = await joined(() => undefined, { ...credential, token: 'given-1' });
  expect(mesh.tokensOffered).toEqual(['given-1']);
  expect(mesh.requests.map(({ path }) => path)).toEqual(['/agents/register']);
  mesh.refusedTokens.add('given-1');
  const again = new Agent({ url: mesh.baseUrl, ca: mesh.ca, token: 'given-1', type: 'shop', drainOnSignals: false });
  await expect(again.connect()).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'unauthorized' });
});

test('on SIGTERM it finishes what runs, and the process ends', async () => {
  const mesh = await MeshServer.start();
  const environment = { ...process.env, FLEET_BASE_URL: mesh.baseUrl, FLEET_TOKEN: 'given-1', TEST_CA: mesh.ca };
  const child = spawn(process.execPath, [new URL('./agent-process.mjs', import.meta.url).pathname], {
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await mesh.frame('heartbeat');
  const running = mesh.dispatch('work');
  const waiting = await mesh.frame('tool_call');
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await mesh.frame('close_request');
  expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('draining');
  mesh.send('tool_result', { ok: true, result: null }, { inReplyTo: waiting.id });
  expect((await mesh.frame('dispatch_result', running)).payload).toMatchObject({ status: { state: 'completed' } });
  expect(await exited).toEqual([null, 'SIGTERM']);
});
