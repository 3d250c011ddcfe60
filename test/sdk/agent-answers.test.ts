import { expect, test } from 'vitest';
import { parseFrame } from '../../mesh/frames/frames.js';
import { type Agent, type AgentTask, type MessageHandler, type ToolCall, ToolError, z } from '../../sdk/index.js';
import { gate } from '../setup/until.js';
import { delivery, joined } from './agents.js';

/** A connected agent. In the end its first socket must still be there, and all that came on it what the mesh takes. */
async function unharmed(prepare: (agent: Agent) => void) {
  const made = await joined(prepare);
  const { mesh } = made;
  const isUnharmed = () =>
    mesh.sockets.length === 1 && mesh.frames.every((frame) => parseFrame(JSON.stringify(frame)).kind === 'frame');
  return { ...made, isUnharmed };
}

/** An agent that answers a message with the handler that it names. */
const byName = (
  rows: readonly (readonly [name: string, handler: (task: AgentTask) => unknown, ...more: unknown[]])[],
) => {
  const handlers = new Map(rows.map(([name, handler]) => [name, handler]));
  return ((task) => handlers.get(task.text)?.(task)) as MessageHandler;
};

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

/** A handler whose answer has nothing to do with the types, as one in JavaScript may be, and what its caller is told after `onMessage: `. */
const BAD_ANSWERS: [name: string, handler: (task: AgentTask) => unknown, message: RegExp][] = [
  ['nothing as a piece', yields('begun', undefined), /a chunk of the answer is undefined; send text/],
  ['a number as a piece', yields(1), /a chunk of the answer is 1; send text/],
  ['a piece of another shape', yields({ type: 'text' }), /parts\.0\.kind: .*a part is \{ kind: 'text', text \}/],
  ['NUL in a piece', yields('a\0b'), /parts\.0\.text holds a NUL character; remove it/],
  ['NUL in the answer', () => 'a\0b', /parts\.0\.text holds a NUL character; remove it/],
  ['NaN', () => Number.NaN, /the answer is NaN; return text/],
  ['a number', () => 42, /the answer is 42; return text/],
  ['some object', () => ({ answer: 42 }), /the answer is \{ answer: 42 \}; return text/],
  ['a function', () => () => 'x', /the answer is \[Function.*\]; return text/],
  ['a state of its own', () => ({ state: 'done' }), /the answer has the state 'done'; return text/],
  ['circular data', () => data(circular), /parts cannot be written as JSON: .*circular/],
  ['a bigint in data', () => data({ n: 1n }), /parts cannot be written as JSON: .*BigInt/],
  ['data that is none', () => data(7), /parts\.0\.data: .*a part is/],
  ['data that is nested too deep', () => data(nested(40)), /parts\.0\.data\.in\.in.* is nested deeper than 32; /],
  ['a key that no object has', () => data(JSON.parse('{"__proto__":1}')), /parts\.0\.data holds the key __proto__; /],
  [
    'an artifact without parts',
    () => ({ state: 'completed', artifacts: [{ name: 'report' }] }),
    /artifacts\.0\.parts: .*an artifact is \{ parts, artifactId\?, /,
  ],
  [
    'an artifact with a member of another name',
    () => ({ state: 'completed', artifacts: [{ parts: [], title: 'report' }] }),
    /artifacts\.0\.title is no member that anybody reads; an artifact is/,
  ],
  [
    'a file with a member of another name',
    () => [{ kind: 'file', file: { uri: 'https://example.com', mime: 'text/plain' } }],
    /parts\.0\.file\.mime is no member that anybody reads; a part is/,
  ],
  [
    'a result with a member of another name',
    () => ({ state: 'completed', text: 'x', tokens: 1 }),
    /an answer that is completed has no member tokens, but state, text, parts, artifacts, usage$/,
  ],
  ['an answer that is too large', () => 'x'.repeat(1_100_000), /parts: 1100\d{3} bytes of JSON are more than/],
  ['a piece that is too large', yields('x'.repeat(1_100_000)), /an answer has at most \d+ bytes/],
  ['an unknown kind of question', (task) => task.ask({ kind: 'riddle' } as never), /question\.kind: .*a question is/],
  ['no question', () => ({ state: 'input-required' }), /question is undefined; a question is/],
  [
    'a code that is too long',
    () => ({ state: 'failed', code: 'E'.repeat(65), message: 'sold out' }),
    /code: 'E+.* is not valid; a code has 1 to 64 characters\. The failure was: sold out$/,
  ],
  ['a status that is no text', (task) => task.status(7 as never), /status: .*a status is text/],
  ['bytes', () => new Blob(['x']).stream(), /parts\.0/],
  ['a bad piece that nobody awaits', (task) => void task.stream(7 as never), /a chunk of the answer is 7/],
  [
    'a source with a bad piece that nobody awaits',
    async (task) => {
      void task.stream(yields('a', null)() as never);
      await new Promise(setImmediate);
    },
    /a chunk of the answer is null/,
  ],
];

test('an answer that cannot be sent fails its dispatch, and nothing else', async () => {
  const { mesh, lines, isUnharmed } = await unharmed((agent) =>
    agent.onMessage(byName(BAD_ANSWERS)).skill('good', () => 'fine'),
  );
  for (const [name, , message] of BAD_ANSWERS) {
    const failed = await mesh.failure(mesh.dispatch(name));
    expect([name, failed]).toMatchObject([name, { code: 'HANDLER_ERROR', retryable: false }]);
    expect(failed.message, name).toMatch(new RegExp(`^onMessage: ${message.source}`));
    expect(lines.splice(0), name).toMatchObject([
      { level: 'error', handler: 'onMessage', message_id: 'msg_1', text: 'handler failed' },
    ]);
  }
  const good = await mesh.result(mesh.dispatch('go', { skillId: 'good' }));
  expect(good.result).toMatchObject({ artifacts: [{ parts: [{ text: 'fine' }] }] });
  expect(isUnharmed()).toBe(true);
});

test('usage that is none is left out with a warning, and the answer goes on', async () => {
  const usages = [
    { prompt_tokens: 3 },
    { inputTokens: 1, outputTokens: 2, cost: 3 },
    { inputTokens: 1.5, outputTokens: 2 },
    { inputTokens: Number.NaN, outputTokens: 2 },
    7,
  ];
  const { mesh, lines, isUnharmed } = await unharmed((agent) =>
    agent.skill('sum', (task) => {
      return { state: 'completed', parts: [{ kind: 'text', text: '4' }], usage: usages[Number(task.text)] as never };
    }),
  );
  for (const index of usages.keys()) {
    const answer = await mesh.result(mesh.dispatch(String(index), { skillId: 'sum' }));
    expect(answer).toMatchObject({
      status: { state: 'completed' },
      result: { artifacts: [{ parts: [{ text: '4' }] }] },
    });
    expect(answer).not.toHaveProperty('usage');
    const problem = expect.stringMatching(/^usage.*usage is \{ inputTokens, outputTokens/);
    expect(lines.splice(0)).toMatchObject([{ level: 'warn', handler: 'skill sum', problem }]);
  }
  expect(isUnharmed()).toBe(true);
});

test('what a handler throws is logged with its stack and the name of the handler', async () => {
  const { mesh, lines, isUnharmed } = await unharmed((agent) =>
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
  expect(await mesh.failure(id)).toMatchObject({ code: 'HANDLER_ERROR', message: 'no\uFFFDluck' });
  for (const tool of ['price', 'refund']) await mesh.callTool(delivery(tool));
  const stack = expect.stringContaining('agent-answers.test.ts');
  expect(lines).toMatchObject([
    { level: 'error', handler: 'skill story', dispatch_id: `dsp_${id}`, error: 'no\uFFFDluck', stack },
    { level: 'error', handler: 'tool price', dispatch_id: 'call_1', error: 'no price', stack },
  ]);
  expect(lines).toHaveLength(2);
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

test('every kind of stream is streamed as the answer', async () => {
  const rows: [string, (task: AgentTask) => unknown][] = [
    ['a web stream', () => streamOf('one ', 'two')],
    ['a web stream that is no async iterable', () => bareStreamOf('one ', 'two')],
    ['the promise of a web stream', async () => streamOf('one ', 'two')],
    ['any async iterable', () => iterableOf('one ', 'two')],
    ['a web stream given to task.stream', (task) => task.stream(streamOf('one ', 'two'))],
  ];
  const { mesh } = await joined((agent) => agent.onMessage(byName(rows)));
  for (const [name] of rows) {
    const id = mesh.dispatch(name);
    const { chunk_count, result } = await mesh.result(id);
    expect([name, chunk_count]).toEqual([name, 2]);
    expect(result, name).toMatchObject({ artifacts: [{ parts: [{ text: 'one two' }] }] });
    const texts = mesh.of('dispatch_chunk', id).map(({ payload }) => JSON.stringify(payload.artifact));
    expect(texts.map((text) => /"text":"(.*?)"/.exec(text)?.[1])).toEqual(['one ', 'two']);
  }
});

test('a web stream is canceled with its task', async () => {
  const canceled = gate<unknown>();
  const source = () =>
    new ReadableStream<string>({
      start: (stream) => stream.enqueue('begun'),
      cancel: (reason) => canceled.open(reason ?? 'canceled'),
    });
  const { mesh } = await joined((agent) => agent.onMessage(source));
  const id = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', id);
  mesh.cancel(id);
  expect(await canceled.promise).toBe('canceled');
});

test('an empty answer has no artifact; after a stream it is the stream', async () => {
  const rows: [string, (task: AgentTask) => unknown][] = [
    ['empty text', () => ''],
    ['nothing', () => undefined],
    ['null', () => null],
    ['no parts', () => []],
    ['no artifacts', () => ({ state: 'completed', artifacts: [] })],
    ['a stream without pieces', () => streamOf()],
    ['a stream of empty text', () => streamOf('', '')],
  ];
  const afterStream = async (task: AgentTask) => {
    await task.stream('streamed');
    return '';
  };
  const { mesh } = await joined((agent) => agent.onMessage(byName(rows)).skill('streams', afterStream));
  for (const [name] of rows) {
    const answer = await mesh.result(mesh.dispatch(name));
    expect([name, answer]).toMatchObject([
      name,
      { chunk_count: 0, status: { state: 'completed' }, result: { kind: 'task' } },
    ]);
    expect(answer.result, name).not.toHaveProperty('artifacts');
  }
  const { result } = await mesh.result(mesh.dispatch('go', { skillId: 'streams' }));
  expect(result).toMatchObject({ artifacts: [{ parts: [{ text: 'streamed' }] }] });
});

test('a piece is sent as it was when it was given', async () => {
  const part = { kind: 'data' as const, data: { n: 1 } };
  const { mesh } = await joined((agent) =>
    agent.onMessage(async function* () {
      yield part;
      part.data.n = 2;
    }),
  );
  const { result } = await mesh.result(mesh.dispatch('go'));
  expect(result).toMatchObject({ artifacts: [{ parts: [{ data: { n: 1 } }] }] });
});

test('a tool result that cannot be sent fails its call, and nothing else', async () => {
  const rows: [name: string, handler: () => unknown, message: RegExp][] = [
    ['NUL', () => ({ text: 'a\0b' }), /^tool price: the result\.text holds a NUL character; remove it/],
    ['data nested too deep', () => nested(40), /^tool price: the result\.in.* is nested deeper than 32/],
    ['circular data', () => circular, /^tool price: the result cannot be written as JSON: .*circular/],
    ['NaN', () => Number.NaN, /^tool price: the result is NaN/],
    ['a function', () => () => 7, /^tool price: the result is \[Function/],
    ['too much', () => 'x'.repeat(600_000), /^tool price: the result: 600002 bytes of JSON are more than 524288/],
    [
      'a code that is too long',
      () => Promise.reject(new ToolError('no', { code: 'E'.repeat(65) })),
      /^tool price: the code .*: no$/,
    ],
  ];
  const handlers = new Map(rows.map(([name, handler]) => [name, handler]));
  const { mesh, isUnharmed } = await unharmed((agent) =>
    agent
      .tool('price', z.object({ of: z.string() }), ({ of }) => handlers.get(of)?.())
      .tool('good', z.object({}), (_args, call: ToolCall) => call.tool),
  );
  for (const [name, , message] of rows) {
    const error = { code: 'HANDLER_ERROR', message: expect.stringMatching(message) };
    expect(await mesh.callTool(delivery('price', { of: name })), name).toMatchObject({ ok: false, error });
  }
  expect(await mesh.callTool(delivery('good'))).toEqual({ ok: true, result: 'good' });
  expect(isUnharmed()).toBe(true);
});

test('arguments of a tool call that cannot be sent are refused here', async () => {
  const { mesh, agent, isUnharmed } = await unharmed(() => undefined);
  for (const [args, code, message] of [
    [{ text: 'x'.repeat(1_100_000) }, 'PAYLOAD_TOO_LARGE', /^callTool\('price'\): arguments: 1100\d{3} bytes/],
    [{ text: '\0' }, 'BAD_REQUEST', /^callTool\('price'\): arguments\.text holds a NUL character/],
    [circular, 'BAD_REQUEST', /^callTool\('price'\): arguments cannot be written as JSON/],
    ['tea', 'BAD_REQUEST', /^callTool\('price'\): arguments: .*arguments are an object/],
  ] as const) {
    const failed = agent.callTool('price', args as never);
    await expect(failed).rejects.toMatchObject({ name: 'ToolError', code, message: expect.stringMatching(message) });
  }
  await expect(agent.callTool('price', {}, { deadlineMs: 0.5 })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  mesh.send('ping', {});
  await mesh.frame('pong');
  expect(mesh.of('tool_call')).toEqual([]);
  expect(isUnharmed()).toBe(true);
});
