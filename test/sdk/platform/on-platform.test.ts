import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { textOf } from '../../../contracts/a2a/text.js';
import {
  Agent,
  type AgentOptions,
  FleetClient,
  type StreamEvent,
  type Task,
  type ToolError,
  z,
} from '../../../sdk/index.js';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { until } from '../../setup/until.js';
import { emptyProjectWithPackage } from './packed-project.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..', '..');
/** No types of Node: a project need not have them. */
const LIB = ['es2023', 'esnext.disposable', 'dom'];
let shared: SharedPlatform;

beforeAll(async () => {
  shared = await startPlatform();
});
afterAll(() => shared?.dispose());

function access() {
  const { base_url: url, client_id: clientId, client_secret: clientSecret, ca_file } = shared.platform.devJson();
  return { url, clientId, clientSecret, ca: readFileSync(ca_file, 'utf8') };
}

function caller(url = access().url): FleetClient {
  const client = new FleetClient({ ...access(), url });
  onTestFinished(() => client.destroy());
  return client;
}

function agentOf(type: string, options: Partial<AgentOptions> = {}): Agent {
  const { agent_client_id: clientId, agent_client_secret: clientSecret } = shared.platform.devJson();
  const own = { ...access(), clientId, clientSecret };
  const agent = new Agent({ ...own, type, instanceId: `${type}-1`, drainOnSignals: false, ...options });
  onTestFinished(() => agent.close(0).catch(() => undefined));
  return agent;
}

const answerOf = (task: Task) => (task.artifacts ?? []).map((artifact) => textOf(artifact.parts)).join('');
const to = (
  agentType: string,
  more: { skillId?: string; args?: Record<string, unknown>; deadlineMs?: number; metadata?: { tool: string } } = {},
) => ({
  agentType,
  ...more,
});

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('packed and installed into an empty project, the first lines of its README are an agent', async () => {
  const project = await emptyProjectWithPackage('empty-project');
  const installed = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed.sort()).toEqual(['agent-fleet-sdk', 'jose', 'ws', 'zod']);
  const packageDir = join(project, 'node_modules', 'agent-fleet-sdk');
  expect(readdirSync(join(packageDir, 'dist')).sort()).toEqual(['browser', 'contracts', 'sdk']);
  expect(readdirSync(packageDir)).toContain('LICENSE');
  expect(readdirSync(join(packageDir, 'dist', 'sdk'))).not.toContain('cli');

  const readme = readFileSync(join(packageDir, 'README.md'), 'utf8');
  const [, lines = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(lines.trim().split('\n').filter(Boolean).length).toBeLessThanOrEqual(5);
  writeFileSync(join(project, 'agent.js'), lines);
  const environment = { PATH: process.env.PATH, FLEET_DATA_DIR: shared.platform.dataDir };
  const child = spawn(process.execPath, ['agent.js'], { cwd: project, env: environment, stdio: ['ignore', 2, 2] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const client = caller();
  const isThere = async () => (await client.post('/agents/get', { agent_type: 'shouter' })).count === 1;
  await until(isThere, { what: 'the agent' }); // a type that was never registered fails at once
  expect(answerOf(await client.send('listen', to('shouter')))).toBe('LISTEN');

  const bundle = readFileSync(join(packageDir, 'dist', 'browser', 'index.js'), 'utf8');
  expect(bundle).not.toMatch(/\bfrom\s*["']|\brequire\(|process\.env/); // needs no other file, and nothing of Node
  for (const file of ['browser/index.js.map', 'sdk/index.js.map']) {
    const map = JSON.parse(readFileSync(join(packageDir, 'dist', file), 'utf8')) as { sourcesContent?: string[] };
    expect(map.sourcesContent?.length).toBeGreaterThan(0);
  }

  const types = `import { Agent, FleetClient, z, type AgentTask, type Task } from 'agent-fleet-sdk';
    import { FleetClient as PageClient } from 'agent-fleet-sdk/browser';
    const agent = new Agent({ type: 't', url: 'http://x', token: async () => 'token' });
    agent.skill({ id: 'sum', input: z.object({ a: z.number() }) }, (_task, { a }) => String(a.toFixed(1)));
    agent.onMessage(async function* (task: AgentTask) { yield task.text; });
    agent.skill('web', () => new ReadableStream<string>());
    // @ts-expect-error an option of routing in metadata
    void new FleetClient().send('hi', { metadata: { agentType: 't' } });
    const page = new PageClient({ url: 'http://x', token: 't' });
    export const ids: Promise<string[]> = page.sessions.get({ pageSize: 2 }).then(({ sessions }) => sessions.map((s) => s.sessionId));
    agent.tool('price', z.object({ item: z.string() }), ({ item }) => item.length);
    // @ts-expect-error a handler's answer is no number
    agent.skill('wrong', () => 7);
    export const answer: Promise<Task> = new FleetClient().send('hi', { signal: new AbortController().signal });`;
  writeFileSync(join(project, 'types.ts'), types);
  const compilerOptions = { noEmit: true, strict: true, module: 'nodenext', target: 'es2023', lib: LIB, types: [] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const checked = await run(process.execPath, [compiler], { cwd: project }).catch((error: { stdout: string }) => error);
  expect(checked.stdout).toBe('');
}, 240_000);

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
    await (mode === 'hosted' ? agent.serve() : agent.connect());
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
      if (number === 5) await go.opened;
      yield `${number} `;
    }
  });
  await agent.connect();
  const proxy = await TcpProxy.to(access().url);
  const client = caller(`http://127.0.0.1:${proxy.port}`);
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
  await reached.opened;
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
    return (await run('curl', ['-sN', '--fail', `${access().url}/send`, ...headers, '-d', body])).stdout;
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
