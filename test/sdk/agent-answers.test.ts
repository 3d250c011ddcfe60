import { expect, onTestFinished, test } from 'vitest';
import { parseFrame } from '../../mesh/frames/frames.js';
import { Agent, type AgentLog, type AgentTask, type ToolCall, ToolError, z } from '../../sdk/index.js';
import { gate } from '../setup/until.js';
import { MeshServer } from './mesh-server.js';

type Logged = Record<keyof AgentLog, { fields: Record<string, unknown>; text: string }[]>;

function recordingLog(): { log: AgentLog; logged: Logged } {
  const logged: Logged = { debug: [], info: [], warn: [], error: [] };
  const into = (level: keyof AgentLog) => (fields: object, text: string) =>
    logged[level].push({ fields: { ...fields }, text });
  return { log: { debug: into('debug'), info: into('info'), warn: into('warn'), error: into('error') }, logged };
}

/** A connected agent. In the end its first socket must still be there, and all that came on it what the mesh takes. */
async function joined(prepare: (agent: Agent) => void) {
  const mesh = await MeshServer.start();
  const { log, logged } = recordingLog();
  const access = { url: mesh.baseUrl, ca: mesh.ca, clientId: 'cred_1', clientSecret: 'secret' };
  const agent = new Agent({ ...access, type: 'shop', instanceId: 'shop-1', drainOnSignals: false, log });
  prepare(agent);
  onTestFinished(() => agent.close(0).catch(() => undefined));
  await agent.connect();
  const isUnharmed = () =>
    mesh.sockets.length === 1 && mesh.frames.every((frame) => parseFrame(JSON.stringify(frame)).kind === 'frame');
  return { mesh, agent, logged, isUnharmed };
}

function nested(levels: number): Record<string, unknown> {
  return levels === 0 ? {} : { in: nested(levels - 1) };
}

const circular: Record<string, unknown> = {};
circular.self = circular;
const data = (value: unknown) => [{ kind: 'data', data: value }];
const yields = (...pieces: unknown[]) =>
  async function* () {
    for (const piece of pieces) yield piece;
  };

/** A handler whose answer has nothing to do with the types, as one in JavaScript may be, and what its caller is told. */
const BAD_ANSWERS: [name: string, handler: (task: AgentTask) => unknown, message: RegExp][] = [
  ['nothing as a piece', yields('begun', undefined), /^onMessage: a chunk of the answer is undefined; send text/],
  ['a number as a piece', yields(1), /^onMessage: a chunk of the answer is 1; send text/],
  [
    'a piece of another shape',
    yields({ type: 'text' }),
    /^onMessage: parts\.0\.kind: .*a part is \{ kind: 'text', text \}/,
  ],
  ['NUL in a piece', yields('a\0b'), /^onMessage: parts\.0\.text holds a NUL character; remove it/],
  ['NUL in the answer', () => 'a\0b', /^onMessage: parts\.0\.text holds a NUL character; remove it/],
  ['NaN', () => Number.NaN, /^onMessage: the answer is NaN; return text/],
  ['a number', () => 42, /^onMessage: the answer is 42; return text/],
  ['some object', () => ({ answer: 42 }), /^onMessage: the answer is \{ answer: 42 \}; return text/],
  ['a function', () => () => 'x', /^onMessage: the answer is \[Function.*\]; return text/],
  ['a state of its own', () => ({ state: 'done' }), /^onMessage: the answer has the state 'done'; return text/],
  ['circular data', () => data(circular), /^onMessage: parts cannot be written as JSON: .*circular/],
  ['a bigint in data', () => data({ n: 1n }), /^onMessage: parts cannot be written as JSON: .*BigInt/],
  ['data that is none', () => data(7), /^onMessage: parts\.0\.data: .*a part is/],
  [
    'data that is nested too deep',
    () => data(nested(40)),
    /^onMessage: parts\.0\.data\.in\.in.* is nested deeper than 32; /,
  ],
  [
    'a key that no object has',
    () => data(JSON.parse('{"__proto__":1}')),
    /^onMessage: parts\.0\.data holds the key __proto__; /,
  ],
  [
    'an artifact without an id',
    () => ({ state: 'completed', artifacts: [{ parts: [{ kind: 'text', text: 'x' }] }] }),
    /^onMessage: artifacts\.0\.artifactId: .*an artifact is \{ artifactId, parts \}/,
  ],
  [
    'an answer that is too large',
    () => 'x'.repeat(1_100_000),
    /^onMessage: parts: 1100\d{3} bytes of JSON are more than/,
  ],
  ['a piece that is too large', yields('x'.repeat(1_100_000)), /^onMessage: an answer has at most \d+ bytes/],
  [
    'an unknown kind of question',
    (task) => task.ask({ kind: 'riddle' } as never),
    /^onMessage: question\.kind: .*a question is/,
  ],
  ['no question', () => ({ state: 'input-required' }), /^onMessage: question is undefined; a question is/],
  [
    'a code that is too long',
    () => ({ state: 'failed', code: 'E'.repeat(65), message: 'sold out' }),
    /^onMessage: code: 'E+.* is not valid; a code has 1 to 64 characters\. The failure was: sold out$/,
  ],
  ['a status that is no text', (task) => task.status(7 as never), /^onMessage: status: .*a status is text/],
  ['bytes', () => new Blob(['x']).stream(), /^onMessage: parts\.0/],
  ['a bad piece that nobody awaits', (task) => void task.stream(7 as never), /^onMessage: a chunk of the answer is 7/],
  [
    'a source with a bad piece that nobody awaits',
    async (task) => {
      void task.stream(yields('a', null)() as never);
      await new Promise(setImmediate);
    },
    /^onMessage: a chunk of the answer is null/,
  ],
];

test.each(BAD_ANSWERS)('%s fails its dispatch, and nothing else', async (_name, handler, message) => {
  const { mesh, logged, isUnharmed } = await joined((agent) =>
    agent.onMessage(handler as never).skill('good', () => 'fine'),
  );
  const failed = await mesh.frame('error', mesh.dispatch('go'));
  expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', retryable: false });
  expect(failed.payload.message).toMatch(message);
  const good = await mesh.frame('dispatch_result', mesh.dispatch('go', { skillId: 'good' }));
  expect(good.payload.result).toMatchObject({ artifacts: [{ parts: [{ text: 'fine' }] }] });
  expect(logged.error).toMatchObject([{ fields: { handler: 'onMessage' }, text: 'handler failed' }]);
  expect(isUnharmed()).toBe(true);
});

test.each([
  ['another shape', { prompt_tokens: 3 }],
  ['fractions', { inputTokens: 1.5, outputTokens: 2 }],
  ['NaN', { inputTokens: Number.NaN, outputTokens: 2 }],
  ['a number', 7],
])('usage of %s is left out with a warning, and the answer goes on', async (_name, usage) => {
  const { mesh, logged, isUnharmed } = await joined((agent) =>
    agent.skill('sum', () => ({ state: 'completed', parts: [{ kind: 'text', text: '4' }], usage: usage as never })),
  );
  const { payload } = await mesh.frame('dispatch_result', mesh.dispatch('', { skillId: 'sum' }));
  expect(payload).toMatchObject({
    status: { state: 'completed' },
    result: { artifacts: [{ parts: [{ text: '4' }] }] },
  });
  expect(payload).not.toHaveProperty('usage');
  const problem = expect.stringMatching(/^usage.*usage is \{ inputTokens, outputTokens/);
  expect(logged.warn).toMatchObject([{ fields: { handler: 'skill sum', problem } }]);
  expect(isUnharmed()).toBe(true);
});

test('what a handler throws is logged with its stack and the name of the handler', async () => {
  const { mesh, logged, isUnharmed } = await joined((agent) =>
    agent
      .skill('story', () => {
        throw new Error('no\0luck');
      })
      .tool('price', z.object({}), () => {
        throw new TypeError('no price');
      })
      .tool('refund', z.object({}), () => {
        throw new ToolError('as meant', { code: 'NOT_NOW' });
      }),
  );
  const id = mesh.dispatch('go', { skillId: 'story' });
  expect((await mesh.frame('error', id)).payload).toMatchObject({ code: 'HANDLER_ERROR', message: 'no\uFFFDluck' });
  for (const tool of ['price', 'refund']) await mesh.frame('tool_result', mesh.send('tool_call', delivery(tool)));
  const stack = expect.stringContaining('agent-answers.test.ts');
  expect(logged.error).toMatchObject([
    { fields: { handler: 'skill story', dispatch_id: `dsp_${id}`, error: 'no\uFFFDluck', stack } },
    { fields: { handler: 'tool price', dispatch_id: 'call_1', error: 'no price', stack } },
  ]);
  expect(isUnharmed()).toBe(true);
});

const streamOf = (...pieces: string[]) =>
  new ReadableStream<string>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
/** A web stream as it is without `Symbol.asyncIterator`. */
const bareStreamOf = (...pieces: string[]) => {
  const stream = streamOf(...pieces);
  return { getReader: () => stream.getReader() };
};
const iterableOf = (...pieces: string[]): AsyncIterable<string> => ({
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: pieces.length === 0, value: pieces.shift() ?? '' }) }),
});

test.each([
  ['a web stream', () => streamOf('one ', 'two')],
  ['a web stream that is no async iterable', () => bareStreamOf('one ', 'two')],
  ['the promise of a web stream', async () => streamOf('one ', 'two')],
  ['any async iterable', () => iterableOf('one ', 'two')],
  ['a web stream given to task.stream', (task: AgentTask) => task.stream(streamOf('one ', 'two'))],
])('%s is streamed as the answer', async (_name, handler) => {
  const { mesh } = await joined((agent) => agent.onMessage(handler));
  const id = mesh.dispatch('go');
  const { payload } = await mesh.frame('dispatch_result', id);
  expect(payload).toMatchObject({ chunk_count: 2, result: { artifacts: [{ parts: [{ text: 'one two' }] }] } });
  const texts = mesh.of('dispatch_chunk', id).map((frame) => JSON.stringify(frame.payload.artifact));
  expect(texts.map((text) => /"text":"(.*?)"/.exec(text)?.[1])).toEqual(['one ', 'two']);
});

test('a web stream is canceled with its task', async () => {
  const canceled = gate<unknown>();
  const { mesh } = await joined((agent) =>
    agent.onMessage(
      () =>
        new ReadableStream<string>({
          start: (stream) => stream.enqueue('begun'),
          cancel: (reason) => canceled.open(reason ?? 'canceled'),
        }),
    ),
  );
  const id = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', id);
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: id });
  expect(await canceled.promise).toBe('canceled');
});

test.each([
  ['empty text', () => ''],
  ['nothing', () => undefined],
  ['null', () => null as never],
  ['no parts', () => []],
  ['no artifacts', () => ({ state: 'completed' as const, artifacts: [] })],
  ['a stream without pieces', () => streamOf()],
  ['a stream of empty text', () => streamOf('', '')],
])('%s is an empty answer', async (_name, handler) => {
  const { mesh } = await joined((agent) => agent.onMessage(handler));
  const { payload } = await mesh.frame('dispatch_result', mesh.dispatch('go'));
  expect(payload).toMatchObject({ chunk_count: 0, status: { state: 'completed' }, result: { kind: 'task' } });
  expect(payload.result).not.toHaveProperty('artifacts');
});

test('an empty answer after a stream is the stream', async () => {
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      await task.stream('streamed');
      return '';
    }),
  );
  const { payload } = await mesh.frame('dispatch_result', mesh.dispatch('go'));
  expect(payload.result).toMatchObject({ artifacts: [{ parts: [{ text: 'streamed' }] }] });
});

test('a piece is sent as it was when it was given', async () => {
  const part = { kind: 'data' as const, data: { n: 1 } };
  const { mesh } = await joined((agent) =>
    agent.onMessage(async function* () {
      yield part;
      part.data.n = 2;
    }),
  );
  const { payload } = await mesh.frame('dispatch_result', mesh.dispatch('go'));
  expect(payload.result).toMatchObject({ artifacts: [{ parts: [{ data: { n: 1 } }] }] });
});

const delivery = (tool: string) => ({
  tool,
  arguments: {},
  dispatch_id: 'call_1',
  deadline_ms: 10_000,
  idempotency_key: 'key-1',
  caller: { agent_type: 'clerk' },
});

test.each<[name: string, handler: () => unknown, message: RegExp]>([
  ['a NUL character', () => ({ text: 'a\0b' }), /^tool price: the result\.text holds a NUL character; remove it/],
  ['data that is nested too deep', () => nested(40), /^tool price: the result\.in.* is nested deeper than 32/],
  ['circular data', () => circular, /^tool price: the result cannot be written as JSON: .*circular/],
  ['NaN', () => Number.NaN, /^tool price: the result is NaN/],
  ['a function', () => () => 7, /^tool price: the result is \[Function/],
  [
    'data that is too large',
    () => 'x'.repeat(600_000),
    /^tool price: the result: 600002 bytes of JSON are more than 524288/,
  ],
  [
    'a code that is too long',
    () => Promise.reject(new ToolError('no', { code: 'E'.repeat(65) })),
    /^tool price: the code .*: no$/,
  ],
])('a tool that gives %s fails its call, and nothing else', async (_name, handler, message) => {
  const { mesh, isUnharmed } = await joined((agent) =>
    agent.tool('price', z.object({}), handler).tool('good', z.object({}), (_args, call: ToolCall) => call.tool),
  );
  const call = async (tool: string) =>
    (await mesh.frame('tool_result', mesh.send('tool_call', delivery(tool)))).payload;
  const text = expect.stringMatching(message);
  expect(await call('price')).toMatchObject({ ok: false, error: { code: 'HANDLER_ERROR', message: text } });
  expect(await call('good')).toEqual({ ok: true, result: 'good' });
  expect(isUnharmed()).toBe(true);
});

test.each<[name: string, args: unknown, code: string, message: RegExp]>([
  [
    'that are too large',
    { text: 'x'.repeat(1_100_000) },
    'PAYLOAD_TOO_LARGE',
    /^callTool\('price'\): arguments: 1100\d{3} bytes/,
  ],
  [
    'with a NUL character',
    { text: '\0' },
    'BAD_REQUEST',
    /^callTool\('price'\): arguments\.text holds a NUL character/,
  ],
  ['that are circular', circular, 'BAD_REQUEST', /^callTool\('price'\): arguments cannot be written as JSON/],
  ['that are no object', 'tea', 'BAD_REQUEST', /^callTool\('price'\): arguments: .*arguments are an object/],
])('arguments of a tool call %s are refused here', async (_name, args, code, message) => {
  const { mesh, agent, isUnharmed } = await joined(() => undefined);
  const failed = agent.callTool('price', args as never);
  await expect(failed).rejects.toMatchObject({ name: 'ToolError', code, message: expect.stringMatching(message) });
  await expect(agent.callTool('price', {}, { deadlineMs: 0.5 })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  mesh.send('ping', {});
  await mesh.frame('pong');
  expect(mesh.of('tool_call')).toEqual([]);
  expect(isUnharmed()).toBe(true);
});
