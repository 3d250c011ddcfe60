import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { textOf } from '../../../contracts/a2a/text.js';
import { freePort } from '../../../embedded/free-port.js';
import { FleetClient, type Task } from '../../../sdk/index.js';
import { httpServer } from '../../runtime/loopback-server.js';
import { MeshServer } from '../../sdk/mesh-server.js';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';

import { until } from '../../setup/until.js';

const source = join(import.meta.dirname, '..', '..', '..', 'examples', 'python');
const toCounter = { agentType: 'python-counter' };
let shared: SharedPlatform;
let proxy: TcpProxy;
let python: string;
let client: FleetClient;
let agent: ChildProcess;
let output = '';

/** Runs a step of the set-up; what it says is shown, and a failure says which step it was. */
async function step(name: string, command: string, args: string[]): Promise<void> {
  process.stderr.write(`[python] ${name}\n`);
  const [code] = await once(spawn(command, args, { stdio: ['ignore', 2, 2] }), 'exit');
  if (code !== 0) throw new Error(`${name} failed with ${code}: ${command} ${args.join(' ')}`);
}

beforeAll(async () => {
  const venv = join(inject('runDir'), 'python-venv');
  await step('making a virtual environment', 'python3', ['-m', 'venv', venv]);
  python = join(venv, 'bin', 'python');
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await step('installing websockets', python, [...install, '-r', join(source, 'requirements.txt')]);
  const meshPort = await freePort();
  proxy = await TcpProxy.to(() => meshPort);
  shared = await startPlatform({
    FLEET_MESH_PORT: String(meshPort),
    FLEET_MESH_URL: `https://127.0.0.1:${proxy.port}`,
  });
  const { base_url: url, client_id: clientId, client_secret: clientSecret } = shared.platform.devJson();
  client = new FleetClient({ url, clientId, clientSecret });
  start();
  await until(async () => (await client.post('/agents/get', { agent_type: 'python-counter' })).count === 1);
}, 240_000);

afterAll(async () => {
  agent?.kill('SIGKILL');
  client?.destroy();
  proxy?.close();
  await shared?.dispose();
});

function spawnAgent(env: Record<string, string>, onText: (text: string) => void): ChildProcess {
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  const child = spawn(python, ['-u', join(source, 'agent.py')], { env: { PATH: process.env.PATH, ...env }, stdio });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => onText(String(text)));
  return child;
}

function start(): void {
  const { base_url, agent_client_id, agent_client_secret, ca_file } = shared.platform.devJson();
  const credential = { FLEET_CLIENT_ID: agent_client_id, FLEET_CLIENT_SECRET: agent_client_secret };
  agent = spawnAgent({ FLEET_BASE_URL: base_url, ...credential, FLEET_CA_FILE: ca_file }, (text) => (output += text));
}

/** An agent of a test's own, with what it prints. */
function anotherAgent(env: Record<string, string>) {
  const credential = { FLEET_CLIENT_ID: 'cred_1', FLEET_CLIENT_SECRET: 'secret' };
  const run = { printed: '', child: spawnAgent({ ...credential, ...env }, (text) => (run.printed += text)) };
  onTestFinished(() => void run.child.kill('SIGKILL'));
  return { run, exited: once(run.child, 'exit') };
}

const answerOf = (task: Task) => (task.artifacts ?? []).map((artifact) => textOf(artifact.parts)).join('');

async function pieces(text: string, onPiece: (count: number) => void = () => undefined): Promise<string[]> {
  const found: string[] = [];
  for await (const event of client.stream(text, toCounter)) {
    if (event.kind !== 'artifact-update') continue;
    found.push(textOf(event.artifact.parts));
    onPiece(found.length);
  }
  return found;
}

test('an agent on Python and websockets answers, in chunks where it has many', async () => {
  expect(answerOf(await client.send('hello', toCounter))).toBe('You said: hello');
  expect(await pieces('count 5 every 1')).toEqual(['1 ', '2 ', '3 ', '4 ', '5 ']);
});

test('it comes back after a cut and resumes what it was doing', async () => {
  const counted = await pieces('count 8 every 300', (count) => {
    if (count === 2) proxy.cut();
  });
  expect(counted.join('')).toBe('1 2 3 4 5 6 7 8 ');
  expect(output).toContain('resumed: True');
});

test('it comes back over a slow connection without a gap in its chunks', async () => {
  output = '';
  const counted = await pieces('count 60 every 100', (count) => {
    if (count !== 2) return;
    proxy.latencyMs = 400; // the welcome arrives some chunks after the hello
    proxy.cut();
  }).finally(() => {
    proxy.latencyMs = 0;
  });
  expect(counted.join('')).toBe(Array.from({ length: 60 }, (_, index) => `${index + 1} `).join(''));
  expect(output).toContain('resumed: True');
});

test('it hears that a message was canceled', async () => {
  const task = await client.send('count 1000', { ...toCounter, blocking: false });
  await until(async () => (await client.messages.getById({ messageId: task.id })).message.state === 'working', {
    what: 'the message at work',
  });
  await client.messages.cancel({ messageId: task.id });
  await until(() => output.includes('was aborted'), { what: 'the log line of the agent' });
  expect((await client.messages.getById({ messageId: task.id })).message.state).toBe('canceled');
});

test('on SIGTERM it finishes what it is doing and leaves', async () => {
  const exited = once(agent, 'exit');
  const counted = await pieces('count 4 every 200', (count) => {
    if (count === 1) agent.kill('SIGTERM');
  });
  expect(counted.join('')).toBe('1 2 3 4 ');
  expect(await exited).toEqual([0, null]);
  const { agent: instance } = await client.post('/agents/get_by_id', { instance_id: 'python-counter-1' });
  expect((instance as { status: string }).status).toBe('offline');
});

test.each([401, 403])('a platform that refuses it with %d ends it at once', async (status) => {
  const body = JSON.stringify({ error: 'not you', code: 'unauthorized' });
  const platform = await httpServer((_request, response) => response.writeHead(status).end(body));
  const { run, exited } = anotherAgent({ FLEET_BASE_URL: platform.url });
  expect(await exited).toEqual([1, null]);
  expect(run.printed).toContain(`python-counter stops: refused with ${status}: ${body}; check FLEET_CLIENT_ID`);
});

test.each([
  [4409, 'another process has this instance_id now'],
  [4410, 'the instance was deregistered'],
])('a socket that is closed with %d ends it at once', async (closeCode, reason) => {
  const mesh = await MeshServer.start();
  const caFile = join(inject('runDir'), `python-ca-${closeCode}.pem`);
  writeFileSync(caFile, mesh.ca);
  const { run, exited } = anotherAgent({ FLEET_BASE_URL: mesh.baseUrl, FLEET_CA_FILE: caFile });
  await mesh.frame('heartbeat');
  mesh.sockets[0]?.close(closeCode);
  expect(await exited).toEqual([1, null]);
  expect(run.printed).toContain(`python-counter stops: ${reason}`);
});

test('it stays away once it is deregistered', async () => {
  start();
  await client.send('hello', toCounter);
  const exited = once(agent, 'exit');
  await client.post('/agents/deregister', { instance_id: 'python-counter-1' });
  expect(await exited).toEqual([1, null]);
  expect(output).toContain('the instance was deregistered');
});

test('it stays away, too, when it is deregistered between two connections', async () => {
  start();
  await client.send('hello', toCounter);
  const exited = once(agent, 'exit');
  proxy.isShut = true;
  output = '';
  proxy.cut();
  await until(() => output.includes('not connected'), { what: 'a lost connection' });
  await client.post('/agents/deregister', { instance_id: 'python-counter-1' });
  proxy.isShut = false;
  expect(await exited).toEqual([1, null]);
  expect(output).toContain('the instance was deregistered');
});
