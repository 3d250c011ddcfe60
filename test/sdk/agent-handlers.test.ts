import { expect, test, vi } from 'vitest';
import { ToolError, z } from '../../sdk/index.js';
import { aborted, agentWith, codeOf, delivery, joined } from './agents.js';

test('an async generator streams what it yields, and what it returns is its end', async () => {
  const { mesh } = await joined((agent) =>
    agent.onMessage(async function* (task) {
      yield 'one ';
      yield [{ kind: 'text', text: 'two ' }];
      yield { kind: 'data', data: { three: 3 } };
      if (task.text === 'ask') return task.ask({ kind: 'approval', title: 'More?', prompt: 'Shall I go on?' });
    }),
  );
  expect(await mesh.result(mesh.dispatch('tell'))).toMatchObject({
    chunk_count: 3,
    status: { state: 'completed' },
    result: { artifacts: [{ parts: [{ text: 'one two ' }, { data: { three: 3 } }] }] },
  });
  const asked = { state: 'input-required', input_request: { title: 'More?' } };
  expect((await mesh.result(mesh.dispatch('ask'))).status).toMatchObject(asked);
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
  expect(await mesh.failure(mesh.dispatch('throw'))).toMatchObject({ code: 'HANDLER_ERROR', message: 'no luck' });
  const canceled = mesh.dispatch('wait');
  await mesh.frame('dispatch_chunk', canceled);
  mesh.cancel(canceled);
  await vi.waitFor(() => expect(cleaned).toEqual(['throw', 'wait']));
  expect(mesh.of('dispatch_chunk', canceled)).toHaveLength(1);
});

test('a source that task.stream reads is left when its task is canceled', async () => {
  let isLeft = false;
  const endless = async function* () {
    try {
      for (;;) yield* ['more', await new Promise<string>((resolve) => setImmediate(resolve, ''))];
    } finally {
      isLeft = true;
    }
  };
  const { mesh } = await joined((agent) => agent.onMessage((task) => task.stream(endless())));
  const id = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', id);
  mesh.cancel(id);
  await vi.waitFor(() => expect(isLeft).toBe(true));
});

test('a skill gets its messages with the input that its schema read, and the platform learns of it', async () => {
  const input = z.object({ a: z.number(), b: z.number() });
  const { mesh } = await joined((agent) =>
    agent
      .skill({ id: 'sum', description: 'Adds up', input }, (task, { a, b }) => `${a + b} ${JSON.stringify(task.args)}`)
      .skill('shout', (task) => task.text.toUpperCase()),
  );
  const skills = [
    { id: 'sum', name: 'sum', description: 'Adds up', tags: [] },
    { id: 'shout', name: 'shout', description: '', tags: [] },
  ];
  expect(mesh.requests.at(-1)?.body).toMatchObject({ skills, agent_card: { name: 'shop', skills } });
  expect((await mesh.frame('hello')).payload.skills).toEqual(skills);
  const parts = [{ kind: 'data', data: { a: 2, b: 3 } }];
  const answers: [object, string][] = [
    [{ skillId: 'sum', parts }, '5 undefined'],
    [{ skillId: 'sum', parts, more: { args: { a: 1, b: 1 } } }, '2 {"a":1,"b":1}'],
    [{ skillId: 'shout' }, 'HI'],
  ];
  for (const [more, text] of answers) {
    expect((await mesh.result(mesh.dispatch('hi', more))).result).toMatchObject({ artifacts: [{ parts: [{ text }] }] });
  }
  const unfit = { code: 'INVALID_DISPATCH', message: expect.stringContaining('at a') };
  expect(await mesh.failure(mesh.dispatch('hi', { skillId: 'sum' }))).toMatchObject(unfit);
  for (const more of [{}, { skillId: 'sing' }]) {
    expect((await mesh.failure(mesh.dispatch('hi', more))).code).toBe('INVALID_DISPATCH');
  }
});

test('a card of one’s own keeps what the SDK declares, and says itself which files it takes', async () => {
  const own = { uri: 'https://example.com/own', required: false };
  const capabilities = { stateTransitionHistory: true, extensions: [own] };
  const card = { name: 'Corner shop', capabilities, defaultInputModes: ['text/plain'] };
  const { mesh } = await joined((agent) => agent.onMessage(() => ''), { idempotent: true, card });
  const registration = mesh.requests.find(({ path }) => path === '/agents/register');
  expect(registration?.body.agent_card).toMatchObject({
    name: 'Corner shop',
    capabilities: {
      streaming: true,
      stateTransitionHistory: true,
      extensions: [own, { params: { skills: ['*'] } }],
    },
    defaultInputModes: ['text/plain'],
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
  expect((await mesh.result(mesh.dispatch('', { parts }))).result).toMatchObject({
    artifacts: [{ parts: [{ text: 'a.txt été https://example.com/b undefined 2 tea' }] }],
  });
  const unfit = await mesh.failure(mesh.dispatch('', { parts: [attached] }));
  expect(unfit).toMatchObject({ code: 'INVALID_DISPATCH', message: expect.stringContaining('at count') });
});

test('what streamText and generateText of the AI SDK give is an answer, with what the model used', async () => {
  const used = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
  const words = async function* () {
    yield 'one ';
    yield 'two';
  };
  const first = Promise.resolve({ inputTokens: 1 });
  const { mesh } = await joined((agent) =>
    agent
      .skill('stream', () => ({ textStream: words(), usage: first, totalUsage: Promise.resolve(used) }))
      .skill('web', () => ({ textStream: ReadableStream.from(words()) }))
      .skill('whole', async () => ({ text: 'one two', usage: used }))
      .skill('fail', () => ({ textStream: words(), totalUsage: Promise.reject(new Error('the model is away')) })),
  );
  const usage = { input_tokens: 3, output_tokens: 4 };
  for (const [skillId, chunk_count, reported] of [
    ['stream', 2, usage],
    ['whole', 0, usage],
    ['web', 2, undefined],
  ] as const) {
    const answer = await mesh.result(mesh.dispatch('', { skillId }));
    expect(answer).toMatchObject({ chunk_count, result: { artifacts: [{ parts: [{ text: 'one two' }] }] } });
    expect([skillId, answer.usage]).toEqual([skillId, reported]);
  }
  const failed = { code: 'HANDLER_ERROR', message: 'the model is away' };
  expect(await mesh.failure(mesh.dispatch('', { skillId: 'fail' }))).toMatchObject(failed);
});

test('answers calls of its tools with what the call says, and registers their schemas', async () => {
  const Price = z.object({ item: z.string() }).describe('The price of an item');
  const { mesh } = await joined((agent) =>
    agent
      .tool('price', Price, ({ item }, call) => {
        const { caller, sessionId: session, idempotencyKey: key } = call;
        return { item, for: caller.agentType, session, key };
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
  const result = { item: 'tea', for: 'clerk', session: 'ses_1', key: 'key-1' };
  expect(await mesh.callTool(delivery('price', { item: 'tea' }))).toMatchObject({ ok: true, result });
  expect(await mesh.callTool(delivery('nothing'))).toMatchObject({ ok: true, result: null });
});

test('a tool call that is withdrawn, or lost with its socket, is aborted and not answered', async () => {
  const codes: string[] = [];
  const { mesh } = await joined((agent) =>
    agent.tool('wait', z.object({}), async (_args, { signal }) => {
      await aborted(signal);
      codes.push(codeOf(signal));
      return 'late';
    }),
  );
  mesh.cancel(mesh.send('tool_call', delivery('wait')));
  await vi.waitFor(() => expect(codes).toEqual(['CANCELED']));
  mesh.send('tool_call', delivery('wait'));
  mesh.send('ping', { nonce: 'after the call' });
  await mesh.frame('pong');
  mesh.sockets[0]?.terminate();
  await vi.waitFor(() => expect(codes).toEqual(['CANCELED', 'AGENT_DISCONNECTED']));
  expect(mesh.of('tool_result')).toHaveLength(0);
});

test('a task calls tools as part of itself, and the call is withdrawn with it', async () => {
  const reasons: string[] = [];
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      const options = { target: { agentType: 'shop' }, deadlineMs: 500 };
      await task.callTool('price', { item: task.text }, options).catch((error: Error) => reasons.push(error.message));
    }),
  );
  const id = mesh.dispatch('tea');
  const call = await mesh.frame('tool_call');
  expect(call).toMatchObject({ trace_id: '0af7651916cd43dd8448eb211c80319c', parent_span_id: 'b7ad6b7169203331' });
  expect(call.payload).toMatchObject({ target: { agent_type: 'shop' }, dispatch_id: `dsp_${id}`, deadline_ms: 500 });
  mesh.cancel(id);
  expect((await mesh.failure(call.id)).code).toBe('CANCELED');
  await vi.waitFor(() => expect(reasons).toEqual(['CANCELED']));
});

test('a tool call fails as a ToolError with code and policy, with its own signal, and with its connection', async () => {
  const { mesh, agent } = await joined(() => undefined);
  const called = (signal?: AbortSignal) =>
    agent.callTool('refund', { order: 1 }, signal && { signal }).catch((error: unknown) => error);
  const refused = called();
  const frame = await mesh.frame('tool_call');
  expect(frame.payload).toEqual({ tool: 'refund', arguments: { order: 1 } });
  const error = { code: 'POLICY_DENIED', message: 'not by you', policy_id: 'pol_1', retryable: false };
  mesh.send('tool_result', { ok: false, error }, { inReplyTo: frame.id });
  expect(await refused).toBeInstanceOf(ToolError);
  expect(await refused).toMatchObject({ code: 'POLICY_DENIED', policyId: 'pol_1', retryable: false });

  const own = new AbortController();
  const withdrawn = called(own.signal);
  const second = await mesh.frame('tool_call', undefined, 2);
  own.abort(new Error('changed my mind'));
  expect(await withdrawn).toEqual(new Error('changed my mind'));
  await mesh.failure(second.id);

  const lost = called();
  await mesh.frame('tool_call', undefined, 3);
  mesh.sockets[0]?.terminate();
  expect(await lost).toMatchObject({ code: 'AGENT_DISCONNECTED', retryable: false });
});

test('a ToolError is built like an Error', () => {
  const cause = new Error('the cause');
  const given = { code: 'NOT_NOW', retryable: true, cause };
  expect(new ToolError('no', given)).toMatchObject({ name: 'ToolError', message: 'no', ...given });
  expect(new ToolError('no')).toMatchObject({ code: 'HANDLER_ERROR', retryable: false });
});

test('a token in place of a credential is used as it is, and the agent stops when it is refused', async () => {
  const { mesh } = await joined(() => undefined, { token: 'given-1' });
  expect(mesh.tokensOffered).toEqual(['given-1']);
  expect(mesh.requests.map(({ path }) => path)).toEqual(['/agents/register']);
  mesh.refusedTokens.add('given-1');
  const again = agentWith({ url: mesh.baseUrl, ca: mesh.ca, token: 'given-1' });
  await expect(again.agent.connect()).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'unauthorized' });
});
