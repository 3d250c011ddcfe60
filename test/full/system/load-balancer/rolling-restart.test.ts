// @module-tag once
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent as KeptConnections, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../../embedded/free-port.js';
import { Agent, SILENT_LOG } from '../../../../sdk/index.js';
import { redisServer } from '../../../messages/bus/redis-server.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { until } from '../../../setup/until.js';
import { CheckedBalancer } from './checked-balancer.js';

const PER_SECOND = 100;
/** How long an agent works on a message. */
const WORK_MS = 20;
const AGENTS = 4;
/** The messages before, between and after the restarts. */
const BETWEEN = 500;

const redis = await redisServer();
const nodes = [
  { api: await freePort(), mesh: await freePort() },
  { api: await freePort(), mesh: await freePort() },
];
const api = await CheckedBalancer.of(nodes.map((node) => node.api));
const mesh = await CheckedBalancer.of(nodes.map((node) => node.mesh));
const env = ({ api, mesh: port }: { api: number; mesh: number }) => ({
  REDIS_URL: redis.url,
  FLEET_API_PORT: String(api),
  FLEET_MESH_PORT: String(port),
  FLEET_MESH_URL: `https://127.0.0.1:${mesh.port}`,
  FLEET_NODE_URL: `https://127.0.0.1:${port}`,
  FLEET_STOP_DELAY_MS: '5000',
});
const shared = await startPlatform(env(nodes[0] as (typeof nodes)[0]));
const platforms = [shared.platform, await shared.startPeer({ env: env(nodes[1] as (typeof nodes)[0]) })];

/** Calls of one kind by how they ended. */
class Traffic {
  readonly endings: Record<string, number> = {};
  readonly #connections = new KeptConnections({ connections: 32 });
  readonly #calls: Promise<void>[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(private readonly headers: Record<string, string>) {
    this.#timer = setInterval(() => this.#calls.push(this.#call(this.#calls.length)), 1_000 / PER_SECOND);
  }

  async more(messages: number): Promise<void> {
    const enough = this.#calls.length + messages;
    await until(() => this.#calls.length >= enough, { timeoutMs: 60_000, what: 'further messages' });
  }

  /** Resolves with how many were sent, once all have ended. */
  async stop(): Promise<number> {
    clearInterval(this.#timer);
    await Promise.all(this.#calls);
    await this.#connections.close();
    return this.#calls.length;
  }

  /** One try, as a caller without any retries makes it. */
  async #call(number: number): Promise<void> {
    const message = {
      kind: 'message',
      messageId: `rolling-${number}`,
      role: 'user',
      parts: [{ kind: 'text', text: 'go' }],
    };
    const params = { message, metadata: { agent_type: 'worker' } };
    const ending = await request(`http://127.0.0.1:${api.port}/send`, {
      method: 'POST',
      headers: this.headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: number, method: 'message/send', params }),
      dispatcher: this.#connections,
    })
      .then(async ({ statusCode, body }) => {
        const { result, error } = (await body.json()) as { result?: { status: { state: string } }; error?: unknown };
        return `${statusCode} ${result?.status.state ?? JSON.stringify(error)}`;
      })
      .catch((error: NodeJS.ErrnoException) => error.code ?? String(error));
    this.endings[ending] = (this.endings[ending] ?? 0) + 1;
  }
}

test(`two nodes behind a TCP balancer are restarted in turn under ${PER_SECOND} messages a second, and no call fails`, async () => {
  await until(() => api.inService.length === 2 && mesh.inService.length === 2, { what: 'both nodes in service' });
  const { agent_client_id: clientId, agent_client_secret: clientSecret } = shared.platform.devJson();
  const ca = platforms.map((node) => readFileSync(node.devJson().ca_file, 'utf8')).join('\n');
  for (let number = 1; number <= AGENTS; number += 1) {
    const options = { type: 'worker', instanceId: `worker-${number}`, url: `http://127.0.0.1:${api.port}` };
    const agent = new Agent({ ...options, clientId, clientSecret, ca, drainOnSignals: false, log: SILENT_LOG });
    agent.onMessage(async () => {
      await sleep(WORK_MS);
      return 'done';
    });
    await agent.connect();
    onTestFinished(async () => void (await agent.close(0).catch(() => undefined)));
  }
  const traffic = new Traffic(await shared.platform.client.headers());
  await traffic.more(BETWEEN);
  for (const platform of platforms) {
    await platform.restart();
    await until(() => api.inService.length === 2 && mesh.inService.length === 2, { what: 'the node in service again' });
    await traffic.more(BETWEEN);
  }
  const sent = await traffic.stop();
  expect(traffic.endings).toEqual({ '200 completed': sent });
  expect(await shared.database.value('SELECT count(*)::int FROM messages')).toBe(sent);
}, 300_000);
