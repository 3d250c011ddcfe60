import { expect, test, vi } from 'vitest';
import { type AgentTask, z } from '../../../sdk/index.js';
import { gate } from '../../setup/until.js';
import { aborted, codeOf } from '../agents.js';
import { about, dispatch, send, serving, stream, TRACE, toolCall } from './serving.js';

async function eventsOf(response: Response): Promise<Record<string, unknown>[]> {
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const lines = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: '));
  return lines.map((event) => JSON.parse(event.slice('data: '.length)));
}

const failed = (text: string | RegExp, more: object = {}) => ({
  status: { state: 'failed', message: { parts: [{ text: expect.stringMatching(text) }] } },
  ...more,
});

test('serves its card without a token, and says there where it is', async () => {
  const own = { name: 'Shop', version: '2.0.0' };
  const { agentUrl } = await serving((agent) => agent.skill('sum', () => '4'), undefined, own);
  const card = await (await fetch(new URL('/.well-known/agent-card.json', agentUrl))).json();
  const offers = { capabilities: { streaming: true }, skills: [{ id: 'sum' }] };
  expect(card).toMatchObject({ protocolVersion: '0.3.0', ...own, url: agentUrl, ...offers });
});

test('answers message/send with the task at its end', async () => {
  const { ask } = await serving((agent) =>
    agent.onMessage((task) => ({
      state: 'completed',
      parts: [{ kind: 'text', text: `${task.text} in ${task.sessionId}` }],
      usage: { inputTokens: 3, outputTokens: 4 },
    })),
  );
  expect(await ask(send('hi'))).toMatchObject({
    id: 'frame-1',
    result: {
      kind: 'task',
      id: 'dsp_1',
      contextId: 'ses_1',
      status: { state: 'completed' },
      artifacts: [{ artifactId: 'frame-1', parts: [{ text: 'hi in ses_1' }] }],
      metadata: { usage: { input_tokens: 3, output_tokens: 4 } },
    },
  });
});

test('answers message/stream with the task, each piece as it comes, and the end', async () => {
  const { post } = await serving((agent) =>
    agent.onMessage(async function* (task) {
      await task.status('thinking');
      yield 'one ';
      yield 'two';
    }),
  );
  const events = await eventsOf(await post(stream('go')));
  const results = events.map(({ result }) => result as Record<string, unknown>);
  const kinds = ['task', 'status-update', 'artifact-update', 'artifact-update', 'task', 'status-update'];
  expect(results.map(({ kind }) => kind)).toEqual(kinds);
  expect(results[1]).toMatchObject({ final: false, status: { message: { parts: [{ text: 'thinking' }] } } });
  expect(results.slice(2, 4).map(({ append }) => append)).toEqual([false, true]);
  expect(results[4]).toMatchObject({ artifacts: [{ parts: [{ text: 'one two' }] }] });
  expect(results[5]).toMatchObject({ taskId: 'dsp_1', final: true, status: { state: 'completed' } });
});

test('asks a human with a question beside an empty result, and gets the original message back with the answer', async () => {
  const question = { kind: 'confirmation' as const, title: 'Sure?', prompt: 'Go on?' };
  const { ask, post } = await serving((agent) =>
    agent.onMessage((task) =>
      task.resolution ? `${task.text}: ${task.resolution.resolution} ${task.resolution.accepted}` : task.ask(question),
    ),
  );
  for (const method of ['message/send', 'message/stream']) {
    const response = await post(dispatch(method, 'buy'));
    const asked = method === 'message/send' ? await response.json() : (await eventsOf(response)).at(-1);
    expect(asked).toMatchObject({ result: '', status: { state: 'input-required', input_request: question } });
    const metadata = { resolution: { request_id: 'req_1', resolution: 'confirmed' } };
    expect(await ask(send('buy', { metadata, id: `dsp_again_${method}` }))).toMatchObject({
      result: { artifacts: [{ parts: [{ text: 'buy: confirmed true' }] }] },
    });
  }
});

test('what fails ends as a failed task that says why', async () => {
  const answer = async (task: AgentTask) => {
    if (task.text === 'throw') throw new Error('no luck');
    if (task.text === 'refuse') return { state: 'failed' as const, code: 'SOLD_OUT', message: 'no tea' };
    if (task.text === 'wait') await aborted(task.signal);
    return (task.text === 'number' ? 7 : '') as never;
  };
  const { ask, post } = await serving((agent) =>
    agent
      .onMessage(answer)
      .skill('story', async function* () {
        yield 'begun';
        yield { type: 'text' } as never;
      })
      .tool('price', z.object({}), () => 'a\0b'),
  );
  const metadata = { error: { code: 'SOLD_OUT', message: 'no tea' } };
  for (const [text, expected] of [
    ['throw', failed('no luck')],
    ['wait', failed('DEADLINE_EXCEEDED')],
    ['refuse', failed('no tea', { metadata })],
    ['number', failed(/^onMessage: the answer is 7; return text/)],
  ] as const) {
    const { result } = await ask(send(text, { id: `dsp_${text}`, ...(text === 'wait' && { deadlineMs: 20 }) }));
    expect(result, text).toMatchObject(expected);
  }
  const results = (await eventsOf(await post(stream('', { skill: 'story' })))).map(({ result }) => result);
  expect(results.at(-2)).toMatchObject(failed(/^skill story: parts\.0\.kind: /));
  const message = expect.stringMatching(/^tool price: the result holds a NUL character/);
  const [artifact] = (await ask(toolCall('price', {}))).result.artifacts;
  expect(artifact?.parts).toMatchObject([{ data: { ok: false, error: { code: 'HANDLER_ERROR', message } } }]);
  const empty = (await ask(send('', { id: 'dsp_3' }))).result;
  expect(empty).toMatchObject({ status: { state: 'completed' } });
  expect(empty).not.toHaveProperty('artifacts');
});

test('a stream that breaks leaves the task running; it is told when asked for, and canceled when told to', async () => {
  const codes: string[] = [];
  const { ask, stateOf, post } = await serving((agent) =>
    agent.onMessage(async function* (task) {
      yield 'begun';
      await aborted(task.signal);
      codes.push(codeOf(task.signal));
    }),
  );
  const cut = new AbortController();
  const response = await post(stream('go'), undefined, cut.signal);
  await response.body?.getReader().read();
  cut.abort();
  expect(await stateOf(about('tasks/get', 'dsp_1'))).toBe('working');
  expect(await stateOf(about('tasks/cancel', 'dsp_1'))).toBe('canceled');
  await vi.waitFor(() => expect(codes).toEqual(['CANCELED']));
  expect(await stateOf(about('tasks/get', 'dsp_1'))).toBe('failed');
  expect((await ask(about('tasks/cancel', 'dsp_1'))).error.code).toBe(-32002);
});

test('the outcomes of all streams that broke at once are kept, however many were sent meanwhile', async () => {
  const finish = gate();
  const running = vi.fn();
  const { post, ask, stateOf } = await serving((agent) =>
    agent.onMessage(async (task) => {
      if (task.text === 'quick') return 'quick';
      running();
      await finish.promise;
      return `done ${task.dispatchId}`;
    }),
  );
  const ids = Array.from({ length: 100 }, (_, index) => `dsp_${index}`);
  const cut = new AbortController();
  const streams = ids.map((id) => post(stream('', { id }), undefined, cut.signal));
  await vi.waitFor(() => expect(running).toHaveBeenCalledTimes(100), 20_000);
  await Promise.all(streams);
  cut.abort(); // as a node that dies
  await expect(Promise.all(streams.map(async (one) => (await one).text()))).rejects.toThrow();
  finish.open();
  for (let sent = 0; sent < 70; sent += 1) await ask(send('quick', { id: `quick_${sent}` }));
  const states = await Promise.all(ids.map((id) => stateOf(about('tasks/get', id))));
  expect(states).toEqual(ids.map(() => 'completed'));
});

test('answers calls of its tools, and calls tools by a post that a human may hold up, also while the platform is away', async () => {
  const pending = { ok: false, error: { code: 'APPROVAL_PENDING', message: 'wait', retryable: true } };
  const away = { status: 503, error: 'restarting', code: 'SERVICE_UNAVAILABLE' };
  const answers = [away, pending, away, { ok: true, result: { left: 7 } }];
  const { ask, calls } = await serving(
    (agent) =>
      agent
        .tool('price', z.object({ item: z.string() }), ({ item }, call) => `${item} for ${call.caller.agentType}`)
        .onMessage(async (task) => JSON.stringify(await task.callTool('stock', { item: 'tea' }))),
    ({ path }) => (path === '/tools/call' ? answers.shift() : undefined),
  );
  expect((await ask(toolCall('price', { item: 'tea' }))).result.artifacts[0]?.parts).toEqual([
    { kind: 'data', data: { ok: true, result: 'tea for clerk' } },
  ]);
  expect((await ask(send('go'))).result).toMatchObject({ artifacts: [{ parts: [{ text: '{"left":7}' }] }] });
  const [first, ...again] = calls.filter(({ path }) => path === '/tools/call');
  const body = { tool: 'stock', arguments: { item: 'tea' }, dispatch_id: 'dsp_1', instance_id: 'shop-1' };
  expect(first).toMatchObject({ traceparent: TRACE, body: { ...body, idempotency_key: expect.any(String) } });
  expect(again.map((call) => call.body)).toEqual([first?.body, first?.body, first?.body]);
});

test.each([
  ['not json', -32700],
  ['{"jsonrpc":"1.0"}', -32600],
  [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'no/such' }), -32601],
  [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }), -32602],
  [JSON.stringify(about('tasks/get', 'x')), -32001],
])('%s is JSON-RPC error %d', async (body, code) => {
  const { ask } = await serving((agent) => agent.onMessage(() => 'done'));
  expect(await ask(body)).toMatchObject({ error: { code } });
});

test('refuses a body over 1 MiB', async () => {
  const { post } = await serving((agent) => agent.onMessage(() => 'done'));
  expect((await post('x'.repeat(1024 * 1024 + 1))).status).toBe(413);
});

test('what does not end within the grace of close fails with AGENT_DISCONNECTED, whatever its handler makes of that', async () => {
  const begun = vi.fn();
  const { agent, ask } = await serving((each) =>
    each.onMessage(async (task) => {
      begun();
      await aborted(task.signal);
      throw new Error('stopped in the middle');
    }),
  );
  const answer = ask(send('go'));
  await vi.waitFor(() => expect(begun).toHaveBeenCalled());
  await agent.close(0);
  const message = 'AGENT_DISCONNECTED';
  const error = { code: 'AGENT_DISCONNECTED', message, retryable: false, unfinished: true };
  expect((await answer).result).toMatchObject(failed('AGENT_DISCONNECTED', { metadata: { error } }));
});

test('close finishes what runs and then stops listening', async () => {
  const finish = gate();
  const { agent, agentUrl, ask, stateOf } = await serving((each) => each.onMessage(() => finish.promise));
  const state = stateOf(send('go'));
  await vi.waitFor(async () => expect((await ask(about('tasks/get', 'dsp_1'))).result).toBeDefined());
  const closed = agent.close();
  finish.open();
  expect(await state).toBe('completed');
  await closed;
  await expect(fetch(agentUrl)).rejects.toThrow();
});
