// @module-tag once
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../../embedded/free-port.js';
import { redisServer } from '../../../messages/bus/redis-server.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { TcpProxy } from '../../../setup/platform/tcp-proxy.js';
import { pythonWithPackage } from '../../../setup/python-package.js';
import { StreamReader } from '../../../setup/stream-reader.js';
import { until } from '../../../setup/until.js';
import { looksOf, to } from '../../../system/fixture.js';
import { type CountingAgent, type JoinOptions, PythonAgent, TypeScriptAgent } from './counting-agents.js';

const python = await pythonWithPackage();
const redis = await redisServer();
/** Two nodes behind a load balancer, which gives each connection to the next one, whatever becomes of it. */
const ports = [await freePort(), await freePort()];
let inService = ports;
let turn = 0;
const balancer = await TcpProxy.to(() => inService[turn++ % inService.length] ?? 0);
/** Ways to each node that pass by it. */
const direct = await Promise.all(ports.map((port) => TcpProxy.to(() => port)));
const env = (index: number) => ({
  REDIS_URL: redis.url,
  FLEET_MESH_URL: `https://127.0.0.1:${balancer.port}`,
  FLEET_MESH_PORT: String(ports[index]),
  FLEET_NODE_URL: `https://127.0.0.1:${direct[index]?.port}`,
});
const shared = await startPlatform(env(0));
const { workflowOf } = looksOf(shared);
const a = shared.platform;
const b = await shared.startPeer({ env: env(1) });

/** Cuts every connection to the nodes. */
function cut(): void {
  for (const way of [balancer, ...direct]) way.cut();
}

const numbersIn = (text: string) => text.trim().split(' ').map(Number);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** The chunks that a reader of a message's stream has got. */
function counted(stream: StreamReader): number[] {
  return stream.events.flatMap((event) => {
    const part = event.kind === 'artifact-update' ? event.artifact.parts[0] : undefined;
    return part?.kind === 'text' ? numbersIn(part.text) : [];
  });
}

/** The message counted without a gap and without a repeat, in one dispatch. */
async function expectCounted(messageId: string): Promise<void> {
  const { assistant_output } = await a.client.untilState(messageId, 'completed', 60_000);
  const numbers = numbersIn(assistant_output ?? '');
  expect(numbers).toEqual(upTo(numbers.length));
  const dispatches = await shared.database.query('SELECT state FROM dispatches WHERE message_id = $1', [messageId]);
  expect(dispatches).toEqual([{ state: 'completed' }]);
}

/** Gives an agent a message that does not end by itself. */
async function count(node: TestPlatform, type: string): Promise<string> {
  const { id } = await node.client.send('count', { ...to(type), blocking: false });
  await a.client.untilState(id, 'working', 30_000);
  return id;
}

beforeEach(async () => {
  if (b.ended) await b.start();
});

describe.each<[sdk: string, make: (options: JoinOptions) => CountingAgent]>([
  ['TypeScript', (options) => new TypeScriptAgent(options)],
  ['Python', (options) => new PythonAgent(python, options)],
])('an agent on the %s SDK', (sdk, make) => {
  /** It is connected to node b by way of the balancer. */
  const join = async (name: string): Promise<CountingAgent & { type: string }> => {
    const type = `${sdk}-${name}`;
    const { base_url: url, agent_client_id: clientId, agent_client_secret: clientSecret } = a.devJson();
    const ca = [a, b].map((node) => readFileSync(node.devJson().ca_file, 'utf8')).join('\n');
    const agent = make({ type, url, clientId, clientSecret, ca });
    onTestFinished(async () => void (await agent.close()));
    inService = ports.slice(1);
    await agent.connect();
    inService = ports;
    return Object.assign(agent, { type });
  };
  const untilMoved = ({ connected }: CountingAgent) =>
    until(() => connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });

  test('resumes behind a balancer at the node that has its work, whenever its socket is cut', async () => {
    const agent = await join('resuming');
    const message = await count(b, agent.type);
    for (const cuts of [1, 2, 3]) {
      cut();
      await until(() => agent.connected.length > cuts, { what: `connection ${cuts + 1}` });
      expect(agent.connected.at(-1)).toEqual({ ...agent.connected[0], resumed: true });
    }
    agent.enough();
    await expectCounted(message);
  });

  test('goes on at the other node when its own stops: the work ends completed, once, with every chunk, wherever it was accepted', async () => {
    const agent = await join('moving');
    const messages = [await count(b, agent.type), await count(a, agent.type)];
    const streams = messages.map((id) => new StreamReader(a.client, 'tasks/resubscribe', { id }));
    for (const stream of streams) await until(() => counted(stream).length > 0);
    const stopped = b.stop();
    await untilMoved(agent);
    const [first, second] = agent.connected;
    expect([second?.resumed, second?.meshId === first?.meshId]).toEqual([true, false]);
    await stopped;
    const before = streams.map((stream) => counted(stream).length);
    await until(() => streams.every((stream, index) => counted(stream).length > (before[index] ?? 0)));
    agent.enough();
    for (const message of messages) {
      await expectCounted(message);
      expect(await workflowOf(message).result()).toEqual({ state: 'completed' });
    }
    for (const stream of streams) {
      await stream.done;
      const [begin = 0, ...rest] = counted(stream);
      expect([begin, ...rest]).toEqual(upTo(begin + 1 + rest.length).slice(begin));
    }
  }, 180_000);

  test('takes its work along from a node that is killed as soon as it has passed it on', async () => {
    const agent = await join('orphaned');
    const message = await count(b, agent.type);
    process.kill(b.pid, 'SIGTERM');
    await until(() => agent.disconnections > 0, { timeoutMs: 60_000, what: 'the end of the grace' });
    await b.kill9();
    await untilMoved(agent);
    expect(agent.connected.at(-1)?.resumed).toBe(true);
    agent.enough();
    await expectCounted(message);
  }, 180_000);

  test('loses it, once, at a node that is killed before that', async () => {
    const agent = await join('lost');
    const message = await count(b, agent.type);
    process.kill(b.pid, 'SIGTERM');
    const isDraining = async () => (await shared.database.query('SELECT 1 FROM mesh_nodes WHERE draining')).length > 0;
    await until(isDraining);
    await b.kill9();
    const { error } = await a.client.untilState(message, 'failed', 60_000);
    expect(error?.code).toBe('AGENT_DISCONNECTED');
    await untilMoved(agent);
    agent.enough();
    expect((await a.client.send('again', to(agent.type))).status.state).toBe('completed');
  }, 180_000);
});
