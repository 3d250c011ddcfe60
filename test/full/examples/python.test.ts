import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { textOf } from '../../../sdk/index.js';
import { httpServer } from '../../runtime/loopback-server.js';
import { MeshServer } from '../../sdk/mesh-server.js';
import { credentialOf, type Program, startProgram } from '../../sdk/python/programs.js';
import { cleanUp } from '../../setup/clean-up.js';
import { emptyPython, installPackages } from '../../setup/python-package.js';
import { until } from '../../setup/until.js';
import { piecesOf, platformBehindProxy, untilAtWork } from '../sdk/python/behind-proxy.js';

const source = join(import.meta.dirname, '..', '..', '..', 'examples', 'python');
const toCounter = { agentType: 'python-counter' };
const python = await emptyPython();
await installPackages(python, ['-r', join(source, 'requirements.txt')]);
const { shared, proxy, client } = await platformBehindProxy();
const start = () => startProgram(python, [join(source, 'agent.py')], credentialOf(shared, 'agent'));
let agent = start();
cleanUp(() => agent.child.kill('SIGKILL'));
await until(async () => (await client.post('/agents/get', { agent_type: 'python-counter' })).count === 1);

/** An agent of a test's own. */
function anotherAgent(env: Record<string, string>): Program {
  const credential = { FLEET_CLIENT_ID: 'cred_1', FLEET_CLIENT_SECRET: 'secret' };
  const program = startProgram(python, [join(source, 'agent.py')], { ...credential, ...env });
  onTestFinished(() => void program.child.kill('SIGKILL'));
  return program;
}

const pieces = (text: string, onPiece?: (count: number) => void) => piecesOf(client, text, toCounter, onPiece);

test('an agent on Python and websockets answers, in chunks where it has many', async () => {
  expect(textOf(await client.send('hello', toCounter))).toBe('You said: hello');
  expect(await pieces('count 5 every 1')).toEqual(['1 ', '2 ', '3 ', '4 ', '5 ']);
});

test('it comes back over a slow connection without a gap in its chunks', async () => {
  agent.output = '';
  const counted = await pieces('count 60 every 100', (count) => {
    if (count !== 2) return;
    proxy.latencyMs = 400; // the welcome arrives some chunks after the hello
    proxy.cut();
  }).finally(() => {
    proxy.latencyMs = 0;
  });
  expect(counted.join('')).toBe(Array.from({ length: 60 }, (_, index) => `${index + 1} `).join(''));
  expect(agent.output).toContain('resumed: True');
});

test('it hears that a message was canceled', async () => {
  const task = await client.send('count 1000', { ...toCounter, blocking: false });
  await untilAtWork(client, task);
  await client.messages.cancel({ messageId: task.id });
  await until(() => agent.output.includes('was aborted'), { what: 'the log line of the agent' });
  expect((await client.messages.getById({ messageId: task.id })).message.state).toBe('canceled');
});

test('on SIGTERM it finishes what it is doing and leaves', async () => {
  const counted = await pieces('count 4 every 200', (count) => {
    if (count === 1) agent.child.kill('SIGTERM');
  });
  expect(counted.join('')).toBe('1 2 3 4 ');
  expect(await agent.ended).toEqual([0, null]);
  const { agent: instance } = await client.post('/agents/get_by_id', { instance_id: 'python-counter-1' });
  expect((instance as { status: string }).status).toBe('offline');
});

test.each([401, 403])('a platform that refuses it with %d ends it at once', async (status) => {
  const body = JSON.stringify({ error: 'not you', code: 'unauthorized' });
  const platform = await httpServer((_request, response) => response.writeHead(status).end(body));
  const refused = anotherAgent({ FLEET_BASE_URL: platform.url });
  expect(await refused.ended).toEqual([1, null]);
  expect(refused.output).toContain(`python-counter stops: refused with ${status}: ${body}; check FLEET_CLIENT_ID`);
});

test.each([
  [4409, 'another process has this instance_id now'],
  [4410, 'the instance was deregistered'],
])('a socket that is closed with %d ends it at once', async (closeCode, reason) => {
  const mesh = await MeshServer.start();
  const caFile = join(inject('runDir'), `python-ca-${closeCode}.pem`);
  writeFileSync(caFile, mesh.ca);
  const closed = anotherAgent({ FLEET_BASE_URL: mesh.baseUrl, FLEET_CA_FILE: caFile });
  await mesh.frame('heartbeat');
  mesh.sockets[0]?.close(closeCode);
  expect(await closed.ended).toEqual([1, null]);
  expect(closed.output).toContain(`python-counter stops: ${reason}`);
});

test('it stays away once it is deregistered', async () => {
  agent = start();
  await client.send('hello', toCounter);
  await client.post('/agents/deregister', { instance_id: 'python-counter-1' });
  expect(await agent.ended).toEqual([1, null]);
  expect(agent.output).toContain('the instance was deregistered');
});

test('it stays away, too, when it is deregistered between two connections', async () => {
  agent = start();
  await client.send('hello', toCounter);
  proxy.isShut = true;
  agent.output = '';
  proxy.cut();
  await until(() => agent.output.includes('not connected'), { what: 'a lost connection' });
  await client.post('/agents/deregister', { instance_id: 'python-counter-1' });
  proxy.isShut = false;
  expect(await agent.ended).toEqual([1, null]);
  expect(agent.output).toContain('the instance was deregistered');
});
