import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { StreamReader } from '../../../setup/stream-reader.js';
import { until } from '../../../setup/until.js';
import type { BalancedNodes } from './balanced-nodes.js';
import type { Connected, CountingAgent, JoinOptions } from './counting-agent.js';

/** An agent, and the nodes that it works at. */
class Counter {
  readonly type: string;
  readonly #nodes: BalancedNodes;
  readonly #agent: CountingAgent;

  private constructor(type: string, nodes: BalancedNodes, agent: CountingAgent) {
    this.type = type;
    this.#nodes = nodes;
    this.#agent = agent;
  }

  /** It is connected to node b by way of the balancer. */
  static async join(
    type: string,
    nodes: BalancedNodes,
    make: (options: JoinOptions) => CountingAgent,
  ): Promise<Counter> {
    const { base_url: url, agent_client_id: clientId, agent_client_secret: clientSecret } = nodes.a.devJson();
    const ca = [nodes.a, nodes.b].map((node) => readFileSync(node.devJson().ca_file, 'utf8')).join('\n');
    const agent = make({ type, url, clientId, clientSecret, ca });
    onTestFinished(async () => void (await agent.close()));
    await nodes.withOnlyB(() => agent.connect());
    return new Counter(type, nodes, agent);
  }

  get connected(): readonly Connected[] {
    return this.#agent.connected;
  }

  get last(): Connected | undefined {
    return this.connected.at(-1);
  }

  get disconnections(): number {
    return this.#agent.disconnections;
  }

  enough(): void {
    this.#agent.enough();
  }

  /** Gives it a message that does not end by itself. */
  async send(node: TestPlatform): Promise<string> {
    const task = await node.client.send('count', { metadata: { agent_type: this.type }, blocking: false });
    return task.id;
  }

  /** The message counted without a gap and without a repeat, in one dispatch. */
  async expectCounted(messageId: string): Promise<void> {
    const { a, shared } = this.#nodes;
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
}

const numbersIn = (text: string) => text.trim().split(' ').map(Number);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** The chunks that a reader of the message's stream has got. */
function counted(stream: StreamReader): number[] {
  return stream.events.flatMap((event) => {
    const part = event.kind === 'artifact-update' ? event.artifact.parts[0] : undefined;
    return part?.kind === 'text' ? numbersIn(part.text) : [];
  });
}

/** What holds for the agents of either SDK when their sockets are cut, and when their node stops or is killed. */
export function nodeFailures(sdk: string, nodes: BalancedNodes, make: (options: JoinOptions) => CountingAgent): void {
  const join = (type: string) => Counter.join(type, nodes, make);

  beforeEach(async () => {
    if (nodes.b.ended) await nodes.b.start();
  });

  test(`${sdk}: an agent behind a balancer resumes at the node that has its work, whenever its socket is cut`, async () => {
    const counter = await join('resuming');
    const message = await counter.send(nodes.b);
    for (const cuts of [1, 2, 3]) {
      await until(async () => (await nodes.a.client.message(message)).state === 'working');
      nodes.cut();
      await until(() => counter.connected.length > cuts, { what: `connection ${cuts + 1}` });
      expect(counter.last).toEqual({ ...counter.connected[0], resumed: true });
    }
    counter.enough();
    await counter.expectCounted(message);
  });

  describe(`${sdk}: a node that stops while its agent works longer than the grace`, () => {
    test('passes the work on: it ends completed, once, with every chunk, on both paths', async () => {
      const counter = await join('moving');
      const fast = await counter.send(nodes.b);
      const slow = await counter.send(nodes.a);
      for (const message of [fast, slow]) await nodes.a.client.untilState(message, 'working', 30_000);
      const streams = [fast, slow].map((id) => new StreamReader(nodes.a.client, 'tasks/resubscribe', { id }));
      for (const stream of streams) await until(() => counted(stream).length > 0);
      const stopped = nodes.b.stop();
      await until(() => counter.connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });
      expect(counter.last?.resumed).toBe(true);
      expect(counter.last?.meshId).not.toBe(counter.connected[0]?.meshId);
      await stopped;
      const before = streams.map((stream) => counted(stream).length);
      await until(() => streams.every((stream, index) => counted(stream).length > (before[index] ?? 0)));
      counter.enough();
      for (const message of [fast, slow]) {
        await counter.expectCounted(message);
        const workflow = nodes.shared.temporal.workflow.getHandle(`message:${nodes.a.devJson().tenant_id}:${message}`);
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
      const counter = await join('orphaned');
      const message = await counter.send(nodes.b);
      await nodes.a.client.untilState(message, 'working', 30_000);
      process.kill(nodes.b.pid, 'SIGTERM');
      await until(() => counter.disconnections > 0, { timeoutMs: 60_000, what: 'the end of the grace' });
      await nodes.b.kill9();
      await until(() => counter.connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });
      expect(counter.last?.resumed).toBe(true);
      counter.enough();
      await counter.expectCounted(message);
    }, 180_000);

    test('that is killed before it has passed the work on fails it, once', async () => {
      const counter = await join('lost');
      const message = await counter.send(nodes.b);
      await nodes.a.client.untilState(message, 'working', 30_000);
      const draining = () => nodes.shared.database.query('SELECT 1 FROM mesh_nodes WHERE draining');
      process.kill(nodes.b.pid, 'SIGTERM');
      await until(async () => (await draining()).length > 0);
      await nodes.b.kill9();
      const { error } = await nodes.a.client.untilState(message, 'failed', 60_000);
      expect(error?.code).toBe('AGENT_DISCONNECTED');
      await until(() => counter.connected.length === 2, { timeoutMs: 60_000, what: 'the agent at the other node' });
      counter.enough();
      const answer = await nodes.a.client.send('again', { metadata: { agent_type: counter.type } });
      expect(answer.status.state).toBe('completed');
    }, 180_000);
  });
}
