import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../embedded/free-port.js';
import { Agent } from '../../sdk/index.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { startPlatform } from '../setup/platform/platform.js';
import { TcpProxy } from '../setup/platform/tcp-proxy.js';
import { StreamReader } from '../setup/stream-reader.js';
import { until } from '../setup/until.js';

const redis = await redisServer();
const meshPorts = [await freePort(), await freePort()];
/** The nodes that the balancer knows, dead ones too: it gives each connection to the next, whatever becomes of it. */
let inService = meshPorts;
let turn = 0;
const nextPort = () => inService[turn++ % inService.length] ?? 0;
const balancer = await TcpProxy.to(nextPort);
/** A way to each node that passes by the balancer. */
const ways = await Promise.all(meshPorts.map((port) => TcpProxy.to(() => port)));
const own = (index: number) => ({
  FLEET_MESH_PORT: String(meshPorts[index]),
  FLEET_NODE_URL: `https://127.0.0.1:${ways[index]?.port}`,
});
const common = { REDIS_URL: redis.url, FLEET_MESH_URL: `https://127.0.0.1:${balancer.port}` };
const shared = await startPlatform({ ...common, ...own(0) });
const a = shared.platform;
const b = await shared.startPeer({ env: own(1) });

beforeEach(async () => {
  if (b.ended) await b.start();
});

interface Connected {
  meshId: string;
  resumed: boolean;
}

/** An agent on the SDK, connected to node b by way of the balancer. It counts, one number a chunk, until the test has heard enough. */
class Counter {
  readonly agent: Agent;
  readonly type: string;
  /** Its connections so far. */
  readonly connected: Connected[] = [];
  disconnections = 0;
  isEnough = false;

  constructor(type: string) {
    this.type = type;
    const { base_url: url, agent_client_id: clientId, agent_client_secret: clientSecret } = a.devJson();
    const ca = [a, b].map((node) => readFileSync(node.devJson().ca_file, 'utf8')).join('\n');
    this.agent = new Agent({ url, clientId, clientSecret, ca, type, instanceId: `${type}-1`, drainOnSignals: false });
    this.agent.on('connected', (connection) => this.connected.push(connection));
    this.agent.on('disconnected', () => {
      this.disconnections += 1;
    });
    this.agent.onMessage(async (task) => {
      for (let number = 0; !this.isEnough; number += 1) {
        await task.stream(`${number} `);
        await sleep(20);
      }
      return undefined;
    });
    onTestFinished(() => this.agent.close(0).catch(() => undefined));
  }

  async join(): Promise<this> {
    inService = meshPorts.slice(1);
    await this.agent.connect();
    inService = meshPorts;
    return this;
  }

  /** Gives it a message that does not end by itself. */
  async send(node: typeof a): Promise<string> {
    const task = await node.client.send('count', { metadata: { agent_type: this.type }, blocking: false });
    return task.id;
  }

  get last(): Connected | undefined {
    return this.connected.at(-1);
  }
}

const numbersIn = (text: string) => text.trim().split(' ').map(Number);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** A message that counted without a gap and without a repeat, in one dispatch. */
async function expectCounted(messageId: string): Promise<void> {
  const { assistant_output } = await a.client.untilState(messageId, 'completed', 60_000);
  const numbers = numbersIn(assistant_output ?? '');
  expect(numbers).toEqual(upTo(numbers.length));
  const dispatches = await shared.database.query('SELECT state FROM dispatches WHERE message_id = $1', [messageId]);
  expect(dispatches).toEqual([{ state: 'completed' }]);
  const ends = await shared.database.query(
    "SELECT event_type FROM events WHERE payload ->> 'message_id' = $1 AND event_type IN ('message.completed', 'message.error')",
    [messageId],
  );
  expect(ends).toEqual([{ event_type: 'message.completed' }]);
}

/** The chunks that a reader of the message's stream has got. */
function counted(stream: StreamReader): number[] {
  return stream.events.flatMap((event) => {
    const part = event.kind === 'artifact-update' ? event.artifact.parts[0] : undefined;
    return part?.kind === 'text' ? numbersIn(part.text) : [];
  });
}

test('an agent behind a balancer resumes at the node that has its work, whenever its socket is cut', async () => {
  const counter = await new Counter('resuming').join();
  const message = await counter.send(b);
  for (const cuts of [1, 2, 3]) {
    await until(async () => (await a.client.message(message)).state === 'working');
    for (const way of [balancer, ...ways]) way.cut();
    await until(() => counter.connected.length > cuts, { what: `connection ${cuts + 1}` });
    expect(counter.last).toEqual({ ...counter.connected[0], resumed: true });
  }
  counter.isEnough = true;
  await expectCounted(message);
});

describe('a node that stops while its agent works longer than the grace', () => {
  test('passes the work on: it ends completed, once, with every chunk, on both paths', async () => {
    const counter = await new Counter('moving').join();
    const fast = await counter.send(b);
    const slow = await counter.send(a);
    for (const message of [fast, slow]) await a.client.untilState(message, 'working', 30_000);
    const streams = [fast, slow].map((id) => new StreamReader(a.client, 'tasks/resubscribe', { id }));
    for (const stream of streams) await until(() => counted(stream).length > 0);
    const stopped = b.stop();
    await until(() => counter.connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });
    expect(counter.last?.resumed).toBe(true);
    expect(counter.last?.meshId).not.toBe(counter.connected[0]?.meshId);
    await stopped;
    const before = streams.map((stream) => counted(stream).length);
    await until(() => streams.every((stream, index) => counted(stream).length > (before[index] ?? 0)));
    counter.isEnough = true;
    for (const message of [fast, slow]) {
      await expectCounted(message);
      const workflow = shared.temporal.workflow.getHandle(`message:${a.devJson().tenant_id}:${message}`);
      expect(await workflow.result()).toEqual({ state: 'completed' });
    }
    for (const stream of streams) {
      await stream.done;
      const numbers = counted(stream);
      const [first = 0] = numbers;
      expect(numbers).toEqual(upTo(first + numbers.length).slice(first));
    }
  }, 180_000);

  test('that is killed as soon as it has passed the work on takes nothing with it', async () => {
    const counter = await new Counter('orphaned').join();
    const message = await counter.send(b);
    await a.client.untilState(message, 'working', 30_000);
    process.kill(b.pid, 'SIGTERM');
    await until(() => counter.disconnections > 0, { timeoutMs: 60_000, what: 'the end of the grace' });
    await b.kill9();
    await until(() => counter.connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });
    expect(counter.last?.resumed).toBe(true);
    counter.isEnough = true;
    await expectCounted(message);
  }, 180_000);

  test('that is killed before it has passed the work on fails it, once', async () => {
    const counter = await new Counter('lost').join();
    const message = await counter.send(b);
    await a.client.untilState(message, 'working', 30_000);
    const draining = () => shared.database.query('SELECT 1 FROM mesh_nodes WHERE draining');
    process.kill(b.pid, 'SIGTERM');
    await until(async () => (await draining()).length > 0);
    await b.kill9();
    const { error } = await a.client.untilState(message, 'failed', 60_000);
    expect(error?.code).toBe('AGENT_DISCONNECTED');
    await until(() => counter.connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });
    counter.isEnough = true;
    const answer = await a.client.send('again', { metadata: { agent_type: counter.type } });
    expect(answer.status.state).toBe('completed');
  }, 180_000);
});
