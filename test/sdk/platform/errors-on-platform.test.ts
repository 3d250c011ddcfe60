import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { reapAgents } from '../../../agents/agent-watch.js';
import { textOf } from '../../../contracts/a2a/text.js';
import { freePort } from '../../../embedded/free-port.js';
import { Agent, type AgentOptions, FleetClient } from '../../../sdk/index.js';
import { watchRound } from '../../setup/core.js';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { gate, until } from '../../setup/until.js';

let shared: SharedPlatform;
let proxy: TcpProxy;

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

const dev = () => shared.platform.devJson();

function access() {
  const { base_url: url, client_id: clientId, client_secret: clientSecret, ca_file } = dev();
  return { url, clientId, clientSecret, ca: readFileSync(ca_file, 'utf8') };
}

function callerOf(): FleetClient {
  const client = new FleetClient(access());
  onTestFinished(() => client.destroy());
  return client;
}

function agentWith(options: Partial<AgentOptions> = {}) {
  const warnings: string[] = [];
  const agent = new Agent({
    ...access(),
    type: 'shop',
    instanceId: 'shop-1',
    drainOnSignals: false,
    log: {
      debug() {},
      info() {},
      warn: (fields) => void warnings.push((fields as { error: string }).error),
      error() {},
    },
    ...options,
  });
  onTestFinished(() => agent.close(0).catch(() => undefined));
  return { agent, warnings };
}

test.each<[string, () => Partial<AgentOptions>, RegExp]>([
  ['the address of the mesh', () => ({ url: dev().mesh_url }), /mesh.*API.*FLEET_BASE_URL/],
  ['the same without TLS', () => ({ url: dev().mesh_url.replace('https:', 'http:') }), /mesh.*API.*FLEET_BASE_URL/],
  ['a wrong secret', () => ({ clientSecret: 'wrong' }), /credential.*FLEET_CLIENT_SECRET/],
  ['a wrong token', () => ({ token: 'wrong' }), /credential.*FLEET_TOKEN/],
])('%s rejects connect() with what to do', async (_what, options, remedy) => {
  await expect(agentWith(options()).agent.connect()).rejects.toThrow(remedy);
});

test('a type that may not join rejects connect(), and ends an agent whose type it became', async () => {
  const client = callerOf();
  const { agent } = agentWith({ type: 'welcome', instanceId: 'welcome-1' });
  await agent.connect();
  await client.post('/agents/allow_type', { agent_type: 'other' });
  const strange = agentWith({ type: 'strange', instanceId: 'strange-1' });
  await expect(strange.agent.connect()).rejects.toThrow(/may not join.*`type`/);
  const { closed } = agent;
  proxy.cut();
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'forbidden' });
  for (const agent_type of ['worker', 'shop']) await client.post('/agents/allow_type', { agent_type });
});

test('an agent that is deregistered stays away, and is welcome when it is started again', async () => {
  const client = callerOf();
  const { agent } = agentWith({ instanceId: 'shop-2' });
  await agent.connect();
  const { closed } = agent;
  await client.post('/agents/deregister', { instance_id: 'shop-2' });
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  await agentWith({ instanceId: 'shop-2' }).agent.connect();
});

/** Takes an agent's socket, and lets it have no other until `proxy.isShut` is false again. */
async function shutOut(agent: Agent): Promise<void> {
  const lost = new Promise((resolve) => agent.on('disconnected', resolve));
  proxy.isShut = true;
  onTestFinished(() => {
    proxy.isShut = false;
  });
  proxy.cut();
  await lost;
}

test('an agent that is deregistered between two connections stays away, and is welcome when it is started again', async () => {
  const client = callerOf();
  const { agent } = agentWith({ instanceId: 'shop-3' });
  await agent.connect();
  const { closed } = agent;
  await shutOut(agent);
  await client.post('/agents/deregister', { instance_id: 'shop-3' });
  proxy.isShut = false;
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  await agentWith({ instanceId: 'shop-3' }).agent.connect();
});

test('a hosted agent that is deregistered finishes what it has and stays away, and is welcome when it is started again', async () => {
  const client = callerOf();
  await client.post('/agents/allow_type', { agent_type: 'kiosk' });
  const started = gate();
  const finish = gate();
  const { agent } = agentWith({ type: 'kiosk', instanceId: 'kiosk-1' });
  agent.onMessage(async () => {
    started.open();
    await finish.promise;
    return 'last words';
  });
  const url = await agent.serve();
  const { closed } = agent;
  const sent = await client.send('work', { agentType: 'kiosk', blocking: false });
  await started.promise;
  await client.post('/agents/deregister', { instance_id: 'kiosk-1' });
  agent.reportStatus('available'); // with a heartbeat
  const card = new URL('/.well-known/agent-card.json', url);
  const isLeaving = async () => (await fetch(card)).headers.get('connection') === 'close';
  await until(isLeaving, { what: 'an agent that is told to stay away' });
  finish.open();
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  expect(await client.messages.waitFor(sent.id, { until: 'terminal' })).toMatchObject({ state: 'completed' });
  await agentWith({ type: 'kiosk', instanceId: 'kiosk-1' }).agent.serve();
});

/** Deregisters an agent as the platform does after ten minutes of silence. */
async function reap(instance: string): Promise<void> {
  const { database } = shared;
  await database.query("UPDATE mesh_nodes SET started_at = now() - interval '1 hour'");
  const isReaped = async () => {
    await database.query(
      "UPDATE agents SET status = 'unhealthy', last_seen = now() - interval '1 hour' WHERE instance_id = $1",
      [instance],
    );
    await reapAgents(database.db(), watchRound());
    return (
      await database.query('SELECT 1 FROM agents WHERE instance_id = $1 AND deregistered_at IS NOT NULL', [instance])
    ).length;
  };
  await until(isReaped, { what: 'an agent that is reaped' });
}

test.each(['connected', 'hosted'])('a %s agent that was silent for too long comes back by itself', async (mode) => {
  const client = callerOf();
  const [type, instance_id] = [`away-${mode}`, `away-${mode}-1`];
  await client.post('/agents/allow_type', { agent_type: type });
  const { agent } = agentWith({ type, instanceId: instance_id });
  agent.onMessage(() => 'here again');
  await (mode === 'hosted' ? agent.serve() : agent.connect());
  if (mode === 'connected') await shutOut(agent);
  await reap(instance_id);
  proxy.isShut = false;
  if (mode === 'hosted') agent.reportStatus('available'); // with a heartbeat
  const status = async () =>
    ((await client.post('/agents/get_by_id', { instance_id })).agent as { status: string }).status;
  await until(async () => (await status()) === 'available', { what: 'the agent' });
  const sent = await client.send('hello', { agentType: type });
  expect(sent.status.state).toBe('completed');
});

test('a certificate that is not trusted is named', async () => {
  const { agent, warnings } = agentWith({ ca: undefined });
  const connecting = agent.connect();
  await until(() => warnings.length > 0, { what: 'a warning' });
  expect(warnings[0]).toMatch(/^the certificate of wss:\/\/.*FLEET_CA_FILE/);
  await agent.close();
  await connecting;
});

test('what runs while the agent leaves is delivered over a connection that was cut meanwhile', async () => {
  const client = callerOf();
  await client.post('/agents/allow_type', { agent_type: 'worker' });
  const finish = new AbortController();
  const { agent } = agentWith({ type: 'worker', instanceId: 'worker-1' });
  let resumed = false;
  agent.on('connected', (detail) => {
    resumed = detail.resumed;
  });
  agent.onMessage(async function* () {
    yield 'begun, ';
    await new Promise<void>((resolve) => finish.signal.addEventListener('abort', () => resolve()));
    yield 'done';
  });
  await agent.connect();
  const sent = await client.send('work', { agentType: 'worker', blocking: false });
  await until(async () => (await client.messages.getById({ messageId: sent.id })).message.state === 'working', {
    what: 'the work',
  });
  const closed = agent.close();
  const status = async () =>
    ((await client.post('/agents/get_by_id', { instance_id: 'worker-1' })).agent as { status: string }).status;
  await until(async () => (await status()) === 'draining', { what: 'an agent that drains' });
  proxy.cut();
  await until(() => resumed, { what: 'the resumed connection' });
  finish.abort();
  await closed;
  const message = await client.messages.waitFor(sent.id, { until: 'terminal' });
  expect(message).toMatchObject({ state: 'completed', assistantOutput: 'begun, done' });
  expect(textOf(message.parts)).toBe('work');
});
