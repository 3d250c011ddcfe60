import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { reapAgents } from '../../../agents/agent-watch.js';
import { freePort } from '../../../embedded/free-port.js';
import type { Agent, AgentOptions, FleetClient } from '../../../sdk/index.js';
import { watchRound } from '../../setup/core.js';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { gate, until } from '../../setup/until.js';
import { join, sdkOn } from './fixture.js';

let shared: SharedPlatform;
let proxy: TcpProxy;
const dev = () => shared.platform.devJson();
const { caller, agentOf } = sdkOn(dev);
let client: FleetClient;

beforeAll(async () => {
  const meshPort = await freePort();
  proxy = await TcpProxy.to(() => meshPort);
  const FLEET_MESH_URL = `https://127.0.0.1:${proxy.port}`;
  shared = await startPlatform({ FLEET_MESH_PORT: String(meshPort), FLEET_MESH_URL });
});
afterAll(async () => {
  proxy?.close();
  await shared?.dispose();
});
beforeEach(() => {
  client = caller();
  proxy.isShut = false;
});

const allow = (agent_type: string) => client.post('/agents/allow_type', { agent_type });
const deregister = (instance_id: string) => client.post('/agents/deregister', { instance_id });
const statusOf = async (instance_id: string) =>
  ((await client.post('/agents/get_by_id', { instance_id })).agent as { status: string }).status;

test.each<[string, () => Partial<AgentOptions>, RegExp]>([
  ['the address of the mesh', () => ({ url: dev().mesh_url }), /mesh.*API.*FLEET_BASE_URL/],
  ['the same without TLS', () => ({ url: dev().mesh_url.replace('https:', 'http:') }), /mesh.*API.*FLEET_BASE_URL/],
  ['a wrong secret', () => ({ clientSecret: 'wrong' }), /credential.*FLEET_CLIENT_SECRET/],
  ['a wrong token', () => ({ token: 'wrong' }), /credential.*FLEET_TOKEN/],
])('%s rejects connect() with what to do', async (_what, options, remedy) => {
  await expect(agentOf('shop', options()).connect()).rejects.toThrow(remedy);
});

test('a type that may not join rejects connect(), and ends an agent whose type it became', async () => {
  const agent = agentOf('welcome');
  await agent.connect();
  await allow('other');
  await expect(agentOf('strange').connect()).rejects.toThrow(/may not join.*`type`/);
  const { closed } = agent;
  proxy.cut();
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'forbidden' });
});

/** Takes an agent's socket, and lets it have no other until `proxy.isShut` is false again. */
async function shutOut(agent: Agent): Promise<void> {
  const lost = new Promise((resolve) => agent.on('disconnected', resolve));
  proxy.isShut = true;
  proxy.cut();
  await lost;
}

test.each(['connected', 'hosted', 'between two connections'])(
  'an agent (%s) that is deregistered stays away, and is welcome when it is started again',
  async (mode) => {
    const type = `gone-${mode.split(' ')[0]}`;
    await allow(type);
    const agent = agentOf(type);
    await join(agent, mode);
    const { closed } = agent;
    if (mode.startsWith('between')) await shutOut(agent);
    await deregister(`${type}-1`);
    proxy.isShut = false;
    if (mode === 'hosted') agent.reportStatus('available'); // with a heartbeat
    await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
    await join(agentOf(type), mode);
  },
);

/** Deregisters an agent as the platform does after ten minutes of silence. */
async function reap(instance: string): Promise<void> {
  const { database } = shared;
  await database.query("UPDATE mesh_nodes SET started_at = now() - interval '1 hour'");
  const silent = "UPDATE agents SET status = 'unhealthy', last_seen = now() - interval '1 hour' WHERE instance_id = $1";
  const gone = 'SELECT 1 FROM agents WHERE instance_id = $1 AND deregistered_at IS NOT NULL';
  const isReaped = async () => {
    await database.query(silent, [instance]);
    await reapAgents(database.db(), watchRound());
    return (await database.query(gone, [instance])).length;
  };
  await until(isReaped, { what: 'an agent that is reaped' });
}

test.each(['connected', 'hosted'])('a %s agent that was silent for too long comes back by itself', async (mode) => {
  const type = `away-${mode}`;
  await allow(type);
  const agent = agentOf(type).onMessage(() => 'here again');
  await join(agent, mode);
  if (mode === 'connected') await shutOut(agent);
  await reap(`${type}-1`);
  proxy.isShut = false;
  if (mode === 'hosted') agent.reportStatus('available'); // with a heartbeat
  await until(async () => (await statusOf(`${type}-1`)) === 'available', { what: 'the agent' });
  expect((await client.send('hello', { agentType: type })).status.state).toBe('completed');
});

test('what runs while the agent leaves is delivered over a connection that was cut meanwhile', async () => {
  await allow('worker');
  const finish = gate();
  let resumed = false;
  const agent = agentOf('worker')
    .on('connected', (detail) => {
      resumed = detail.resumed;
    })
    .onMessage(async function* () {
      yield 'begun, ';
      await finish.promise;
      yield 'done';
    });
  await agent.connect();
  const sent = await client.send('work', { agentType: 'worker', blocking: false });
  const state = async () => (await client.messages.getById({ messageId: sent.id })).message.state;
  await until(async () => (await state()) === 'working', { what: 'the work' });
  const closed = agent.close();
  await until(async () => (await statusOf('worker-1')) === 'draining', { what: 'an agent that drains' });
  proxy.cut();
  await until(() => resumed, { what: 'the resumed connection' });
  finish.open();
  await closed;
  const message = await client.messages.waitFor(sent.id, { until: 'terminal' });
  expect(message).toMatchObject({ state: 'completed', assistantOutput: 'begun, done' });
});
