import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { textOf } from '../../../contracts/a2a/text.js';
import { type StreamEvent, type Task, type ToolError, z } from '../../../sdk/index.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { gate, until } from '../../setup/until.js';
import { join, sdkOn } from './fixture.js';

const run = promisify(execFile);
const { platform } = await sharedPlatform();
const { caller, agentOf } = sdkOn(platform.devJson);

const answerOf = (task: Task) => (task.artifacts ?? []).map((artifact) => textOf(artifact.parts)).join('');
const to = (
  agentType: string,
  more: { skillId?: string; args?: Record<string, unknown>; deadlineMs?: number; metadata?: { tool: string } } = {},
) => ({
  agentType,
  ...more,
});

test('a hosted agent is registered, streams, asks a human and gets the answer, and leaves', async () => {
  const agent = agentOf('clerk').onMessage(async function* (task) {
    if (!task.resolution) return task.ask({ kind: 'confirmation', title: 'Sell?', prompt: `Sell ${task.text}?` });
    yield `${task.resolution.resolution}: `;
    yield task.text;
  });
  await agent.serve();
  const client = caller();
  const asked = await client.send('tea', to('clerk'));
  expect(asked.status.state).toBe('input-required');
  expect(textOf(asked.status.message?.parts ?? [])).toBe('Sell tea?');
  const [waiting] = (await client.messages.pending({ sessionId: asked.contextId })).messages;
  expect(waiting?.inputRequest).toMatchObject({ title: 'Sell?', prompt: 'Sell tea?' });
  await client.messages.resolve(asked.id, { resolution: 'confirmed' });
  const message = await client.messages.waitFor(asked.id, { until: 'terminal' });
  expect(message).toMatchObject({ state: 'completed', assistantOutput: 'confirmed: tea' });
  await agent.close();
  const instance = () => client.post('/agents/get_by_id', { instance_id: 'clerk-1' });
  expect(((await instance()).agent as { status: string }).status).toBe('draining');
});

test.each(['connected', 'hosted'])(
  'a skill of a %s agent is called with args, else with the data of the message',
  async (mode) => {
    const type = `adder-${mode}`;
    const input = z.object({ a: z.number(), b: z.number() });
    const agent = agentOf(type).skill(
      { id: 'sum', input },
      (task, { a, b }) => `${a + b} ${JSON.stringify(task.args)}`,
    );
    await join(agent, mode);
    const client = caller();
    const data = [{ kind: 'data' as const, data: { a: 1, b: 1 } }];
    const sum = async (more: object) => answerOf(await client.send(data, to(type, { skillId: 'sum', ...more })));
    expect(await sum({ args: { a: 2, b: 3 } })).toBe('5 {"a":2,"b":3}');
    expect(await sum({})).toBe('2 undefined');
  },
);

test('a stream whose connection is cut goes on where it was, without a gap or a repeat', async () => {
  const go = gate();
  const agent = agentOf('counter').onMessage(async function* () {
    for (let number = 0; number < 10; number += 1) {
      if (number === 5) await go.promise;
      yield `${number} `;
    }
  });
  await agent.connect();
  const proxy = await TcpProxy.to(platform.baseUrl);
  const client = caller({ url: `http://127.0.0.1:${proxy.port}` });
  const events: StreamEvent[] = [];
  let cuts = 0;
  for await (const event of client.stream('count', to('counter'))) {
    events.push(event);
    if (event.kind !== 'artifact-update' || cuts === 2) continue;
    cuts += 1;
    proxy.cut();
    if (cuts === 2) go.open();
  }
  expect(cuts).toBe(2);
  const pieces = events.flatMap((event) => (event.kind === 'artifact-update' ? event.artifact.parts : []));
  expect(pieces.map((part) => (part.kind === 'text' ? part.text : '')).join('')).toBe('0 1 2 3 4 5 6 7 8 9 ');
  expect(events.filter(({ kind }) => kind === 'task')).toHaveLength(1);
  expect(events.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
});

test('connected and hosted agents call each other’s tools, and a cancel reaches the one that is called', async () => {
  const reached = gate();
  const reasons: string[] = [];
  await agentOf('warehouse')
    .tool('stock', z.object({ item: z.string() }), async ({ item }, call) => {
      if (item !== 'slow') return { item, left: 7, for: call.caller.agentType };
      reached.open();
      await new Promise<void>((resolve) => call.signal.addEventListener('abort', () => resolve(), { once: true }));
      reasons.push((call.signal.reason as ToolError).code);
      return null;
    })
    .connect();
  await agentOf('desk')
    .tool('greet', z.object({ name: z.string() }), async ({ name }, call) => {
      return { text: `Hello ${name}`, stock: await call.callTool('stock', { item: name }) };
    })
    .serve();
  await agentOf('manager')
    .onMessage(async (task) =>
      JSON.stringify(
        await task.callTool(task.metadata.tool as string, {
          [task.metadata.tool === 'greet' ? 'name' : 'item']: task.text,
        }),
      ),
    )
    .connect();
  const client = caller();
  const greeted = await client.send('Ann', to('manager', { metadata: { tool: 'greet' } }));
  expect(JSON.parse(answerOf(greeted))).toEqual({ text: 'Hello Ann', stock: { item: 'Ann', left: 7, for: 'desk' } });
  const unknown = await client.send('Ann', to('manager', { metadata: { tool: 'sing' } }));
  expect(unknown.status.state).toBe('failed');
  const sent = await client.send('slow', { ...to('manager', { metadata: { tool: 'stock' } }), blocking: false });
  await reached.promise;
  await client.messages.cancel({ messageId: sent.id });
  await until(() => reasons.includes('CANCELED'), { what: 'the end of the call' });
});

test('sessions: opened, listed, read, joined by another agent, interrupted and closed', async () => {
  await agentOf('host')
    .onMessage((task) => task.text)
    .connect();
  await agentOf('guest')
    .onMessage((task) => task.text)
    .connect();
  const { sessions } = caller();
  const { sessionId } = await sessions.init({ agentType: 'host', userId: 'ann' });
  expect((await sessions.get({ status: 'active' })).sessions.map((each) => each.sessionId)).toContain(sessionId);
  expect((await sessions.invite({ sessionId, agentType: 'guest' })).agent.instanceId).toBe('guest-1');
  const { session } = await sessions.getById({ sessionId });
  expect(session.agents.map((agent) => agent.agentType).sort()).toEqual(['guest', 'host']);
  expect((await sessions.interrupt({ sessionId })).requested).toBe(1);
  expect((await sessions.close({ sessionId })).status).toBe('completed');
  await expect(sessions.close({ sessionId })).rejects.toMatchObject({
    name: 'ApiError',
    code: 'SESSION_CLOSED',
    status: 409,
  });
});

test('a call ends with its signal', async () => {
  await agentOf('sleeper')
    .onMessage((task) => new Promise((resolve) => task.signal.addEventListener('abort', () => resolve(''))))
    .connect();
  const client = caller();
  const stop = new AbortController();
  const sending = client.send('sleep', { ...to('sleeper'), signal: stop.signal });
  const { messages } = client;
  await until(async () => (await messages.get({ state: 'working' })).count > 0, { what: 'the message at work' });
  stop.abort(new Error('changed my mind'));
  await expect(sending).rejects.toThrow('changed my mind');
  await expect(client.sessions.init({}, { signal: stop.signal })).rejects.toThrow('changed my mind');
});

test('curl sends and streams', async () => {
  await agentOf('echo')
    .onMessage(async function* (task) {
      yield 'echo: ';
      yield task.text;
    })
    .connect();
  const token = await caller().token();
  const curl = async (method: string) => {
    const message = {
      kind: 'message',
      messageId: `curl-${method}`,
      role: 'user',
      parts: [{ kind: 'text', text: 'hi' }],
    };
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { message, metadata: { agent_type: 'echo' } },
    });
    const headers = ['-H', `Authorization: Bearer ${token}`, '-H', 'Content-Type: application/json'];
    return (await run('curl', ['-sN', '--fail', `${platform.baseUrl}/send`, ...headers, '-d', body])).stdout;
  };
  expect(JSON.parse(await curl('message/send'))).toMatchObject({
    id: 1,
    result: { kind: 'task', status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'echo: hi' }] }] },
  });
  const events = (await curl('message/stream')).split('\n\n').filter((event) => event.includes('data: '));
  const results = events.map((event) => JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? '{}').result);
  expect(results[0].kind).toBe('task');
  const pieces = results.filter(({ kind }) => kind === 'artifact-update').flatMap(({ artifact }) => artifact.parts);
  expect(pieces.map(({ text }) => text).join('')).toBe('echo: hi');
  expect(results.at(-1)).toMatchObject({ kind: 'status-update', final: true });
});
