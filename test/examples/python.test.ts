import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { textOf } from '../../contracts/parts.js';
import { freePort } from '../../embedded/free-port.js';
import { FleetClient, type Task } from '../../sdk/index.js';
import { type CuttingProxy, startCuttingProxy } from '../setup/cutting-proxy.js';
import { type SharedPlatform, startPlatform } from '../setup/platform.js';
import { until } from '../setup/until.js';

const source = join(import.meta.dirname, '..', '..', 'examples', 'python');
const toCounter = { metadata: { agent_type: 'python-counter' } };
let shared: SharedPlatform;
let proxy: CuttingProxy;
let python: string;
let client: FleetClient;
let agent: ChildProcess;
let said = '';

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
  proxy = await startCuttingProxy(() => meshPort);
  shared = await startPlatform({
    FLEET_MESH_PORT: String(meshPort),
    FLEET_MESH_URL: `https://127.0.0.1:${proxy.port}`,
  });
  const { base_url: url, client_id: clientId, client_secret: clientSecret } = shared.platform.devJson();
  client = new FleetClient({ url, clientId, clientSecret });
  start();
  await until(() => client.post('/agents/get_by_id', { instance_id: 'python-counter-1' }), {
    what: 'the agent to register',
  });
}, 240_000);

afterAll(async () => {
  agent?.kill('SIGKILL');
  client?.destroy();
  proxy?.close();
  await shared?.dispose();
});

function start(): void {
  const { base_url, client_id, client_secret, ca_file } = shared.platform.devJson();
  const env = {
    PATH: process.env.PATH,
    FLEET_BASE_URL: base_url,
    FLEET_CLIENT_ID: client_id,
    FLEET_CLIENT_SECRET: client_secret,
    FLEET_CA_FILE: ca_file,
  };
  agent = spawn(python, ['-u', join(source, 'agent.py')], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [agent.stdout, agent.stderr]) stream?.on('data', (text) => (said += String(text)));
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
  expect(said).toContain('resumed: True');
});

test('it hears that a message was canceled', async () => {
  const task = await client.send('count 1000', { ...toCounter, blocking: false });
  await until(async () => (await client.messages.getById(task.id)).state === 'working', {
    what: 'the message at work',
  });
  await client.messages.cancel(task.id);
  await until(() => said.includes('is not wanted any more'), { what: 'the word from the agent' });
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
