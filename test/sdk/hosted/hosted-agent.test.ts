import { generateKeyPair } from 'jose';
import { expect, test, vi } from 'vitest';
import { z } from '../../../sdk/index.js';
import { about, dispatch, type RpcAnswer, serving, TRACE } from './serving.js';

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

async function eventsOf(response: Response): Promise<Record<string, unknown>[]> {
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const lines = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: '));
  return lines.map((event) => JSON.parse(event.slice('data: '.length)));
}

test('serves its card without a token, and says there where it is', async () => {
  const { agentUrl } = await serving((agent) => agent.skill('sum', () => '4'), undefined, {
    name: 'Shop',
    version: '2.0.0',
  });
  const card = await (await fetch(new URL('/.well-known/agent-card.json', agentUrl))).json();
  expect(card).toMatchObject({
    protocolVersion: '0.3.0',
    name: 'Shop',
    version: '2.0.0',
    url: agentUrl,
    capabilities: { streaming: true },
    skills: [{ id: 'sum' }],
  });
});

test('refuses a token that is missing, expired, for another instance or tenant, or signed by somebody else', async () => {
  const { token, post, privateKey } = await serving((agent) => agent.onMessage(() => 'done'));
  const stranger = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const bad = [
    '',
    'x.y.z',
    await token('other-1'),
    await token('shop-1', '-1 minute'),
    await token('shop-1', '60s', stranger.privateKey),
    await token('shop-1', '60s', privateKey, { tenant_id: 'ten_2' }),
    await token('shop-1', '60s', privateKey, {}),
  ];
  for (const bearer of bad) {
    const response = await post(dispatch('message/send', 'hi'), bearer);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
  }
  expect((await post(dispatch('message/send', 'hi'))).status).toBe(200);
});

test('answers message/send with the task at its end', async () => {
  const { ask } = await serving((agent) =>
    agent.onMessage((task) => ({
      state: 'completed',
      parts: [{ kind: 'text', text: `${task.text} in ${task.sessionId}` }],
      usage: { inputTokens: 3, outputTokens: 4 },
    })),
  );
  expect(await ask(dispatch('message/send', 'hi'))).toMatchObject({
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
  const events = await eventsOf(await post(dispatch('message/stream', 'go')));
  const results = events.map(({ result }) => result as Record<string, unknown>);
  const kinds = ['task', 'status-update', 'artifact-update', 'artifact-update', 'task', 'status-update'];
  expect(results.map(({ kind }) => kind)).toEqual(kinds);
  expect(results[1]).toMatchObject({ final: false, status: { message: { parts: [{ text: 'thinking' }] } } });
  expect(results.slice(2, 4).map(({ append }) => append)).toEqual([false, true]);
  expect(results[4]).toMatchObject({ artifacts: [{ parts: [{ text: 'one two' }] }] });
  expect(results[5]).toMatchObject({ taskId: 'dsp_1', final: true, status: { state: 'completed' } });
});

test('asks a human with a question beside an empty result, and gets the original message back with the answer', async () => {
  const { ask, post } = await serving((agent) =>
    agent.onMessage((task) =>
      task.resolution
        ? `${task.text}: ${task.resolution.resolution} ${task.resolution.accepted}`
        : task.ask({ kind: 'confirmation', title: 'Sure?', prompt: 'Go on?' }),
    ),
  );
  for (const method of ['message/send', 'message/stream']) {
    const response = await post(dispatch(method, 'buy'));
    const asked = method === 'message/send' ? await response.json() : (await eventsOf(response)).at(-1);
    expect(asked).toMatchObject({
      result: '',
      status: { state: 'input-required', input_request: { kind: 'confirmation', title: 'Sure?', prompt: 'Go on?' } },
    });
    const metadata = { resolution: { request_id: 'req_1', resolution: 'confirmed' } };
    const again = { ...dispatch('message/send', 'buy', { metadata }), dispatch_id: `dsp_again_${method}` };
    expect(await ask(again)).toMatchObject({
      result: { artifacts: [{ parts: [{ text: 'buy: confirmed true' }] }] },
    });
  }
});

test('a handler that throws, and one that is out of time, end as failed tasks', async () => {
  const { ask } = await serving((agent) =>
    agent.onMessage(async (task) => {
      if (task.text === 'throw') throw new Error('no luck');
      await aborted(task.signal);
      return 'late';
    }),
  );
  const thrown = await ask(dispatch('message/send', 'throw'));
  expect(thrown.result.status).toMatchObject({ state: 'failed', message: { parts: [{ text: 'no luck' }] } });
  const slow = { ...dispatch('message/send', 'wait', { deadlineMs: 20 }), dispatch_id: 'dsp_2' };
  const late = await ask(slow);
  expect(late.result.status).toMatchObject({ state: 'failed', message: { parts: [{ text: 'DEADLINE_EXCEEDED' }] } });
});

test('an answer or a tool result that cannot be sent fails its task, and says why', async () => {
  const { ask, post } = await serving((agent) =>
    agent
      .onMessage((task) => (task.text === 'number' ? 7 : '') as never)
      .skill('story', async function* () {
        yield 'begun';
        yield { type: 'text' } as never;
      })
      .tool('price', z.object({}), () => 'a\0b'),
  );
  const failed = (text: RegExp) => ({
    status: { state: 'failed', message: { parts: [{ text: expect.stringMatching(text) }] } },
  });
  const number = await ask(dispatch('message/send', 'number'));
  expect(number.result).toMatchObject(failed(/^onMessage: the answer is 7; return text/));
  const story = { ...dispatch('message/stream', ''), dispatch_id: 'dsp_2', skill_id: 'story' };
  const results = (await eventsOf(await post(story))).map(({ result }) => result);
  expect(results.at(-2)).toMatchObject(failed(/^skill story: parts\.0\.kind: /));
  const tool_call = { tool: 'price', dispatch_id: 'call_1', caller: { agent_type: 'clerk' }, deadline_ms: 1_000 };
  const call = dispatch('message/send', '', {
    metadata: { tool_call },
    parts: [{ kind: 'data', data: { arguments: {} } }],
  });
  const error = {
    code: 'HANDLER_ERROR',
    message: expect.stringMatching(/^tool price: the result holds a NUL character/),
  };
  const answered = (await ask({ ...call, dispatch_id: 'call_1' })).result;
  expect(answered.artifacts[0]?.parts).toMatchObject([{ data: { ok: false, error } }]);
  const empty = (await ask({ ...dispatch('message/send', ''), dispatch_id: 'dsp_3' })).result;
  expect(empty).toMatchObject({ status: { state: 'completed' } });
  expect(empty).not.toHaveProperty('artifacts');
});

test('a stream that breaks leaves the task running; it is told when asked for, and canceled when told to', async () => {
  const reasons: string[] = [];
  const { ask, post } = await serving((agent) =>
    agent.onMessage(async function* (task) {
      yield 'begun';
      await aborted(task.signal);
      reasons.push((task.signal.reason as Error).message);
    }),
  );
  const cut = new AbortController();
  const response = await post(dispatch('message/stream', 'go'), undefined, cut.signal);
  await response.body?.getReader().read();
  cut.abort();
  expect((await ask(about('tasks/get', 'dsp_1'))).result.status.state).toBe('working');
  expect((await ask(about('tasks/cancel', 'dsp_1'))).result.status.state).toBe('canceled');
  await vi.waitFor(() => expect(reasons).toEqual(['CANCELED']));
  expect((await ask(about('tasks/get', 'dsp_1'))).result.status.state).toBe('failed');
  expect((await ask(about('tasks/cancel', 'dsp_1'))).error.code).toBe(-32002);
});

test('answers calls of its tools, and calls tools by a post that a human may hold up', async () => {
  let asked = 0;
  const { ask, calls } = await serving(
    (agent) =>
      agent
        .tool('price', z.object({ item: z.string() }), ({ item }, call) => `${item} for ${call.caller.agentType}`)
        .onMessage(async (task) => JSON.stringify(await task.callTool('stock', { item: 'tea' }))),
    () => {
      asked += 1;
      const pending = { code: 'APPROVAL_PENDING', message: 'wait', retryable: true };
      return asked === 1 ? { ok: false, error: pending } : { ok: true, result: { left: 7 } };
    },
  );
  const tool_call = {
    tool: 'price',
    dispatch_id: 'call_1',
    caller: { agent_type: 'clerk' },
    deadline_ms: 1_000,
    idempotency_key: 'k',
  };
  const parts = [{ kind: 'data', data: { tool: 'price', arguments: { item: 'tea' } } }];
  const called = { ...dispatch('message/send', '', { metadata: { tool_call }, parts }), dispatch_id: 'call_1' };
  expect((await ask(called)).result.artifacts[0]?.parts).toEqual([
    { kind: 'data', data: { ok: true, result: 'tea for clerk' } },
  ]);
  expect((await ask(dispatch('message/send', 'go'))).result).toMatchObject({
    artifacts: [{ parts: [{ text: '{"left":7}' }] }],
  });
  expect(calls).toHaveLength(2);
  expect(calls[1]?.body).toEqual(calls[0]?.body);
  expect(calls[0]).toMatchObject({
    path: '/tools/call',
    traceparent: TRACE,
    body: { tool: 'stock', arguments: { item: 'tea' }, dispatch_id: 'dsp_1', instance_id: 'shop-1' },
  });
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

test('close finishes what runs and then stops listening', async () => {
  let finish: () => void = () => undefined;
  const { agent, agentUrl, ask, post } = await serving((each) =>
    each.onMessage(async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return 'done';
    }),
  );
  const answer = post(dispatch('message/send', 'go'));
  await vi.waitFor(async () => expect((await ask(about('tasks/get', 'dsp_1'))).result).toBeDefined());
  const closed = agent.close();
  finish();
  expect(((await (await answer).json()) as RpcAnswer).result.status.state).toBe('completed');
  await closed;
  await expect(fetch(agentUrl)).rejects.toThrow();
});
