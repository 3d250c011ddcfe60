import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../../embedded/free-port.js';
import { redisServer } from '../../../messages/bus/redis-server.js';
import { freshDatabase } from '../../../setup/database.js';
import { ApiClient } from '../../../setup/platform/api-client.js';
import type { Home } from '../../../setup/platform/fleet.js';
import { type SharedPlatform, startPlatform } from '../../../setup/platform/platform.js';
import { type TestPlatform, withClocks } from '../../../setup/platform/platform-process.js';
import { TcpProxy } from '../../../setup/platform/tcp-proxy.js';
import { newTenant } from '../../../setup/tenant.js';

/** How long messages wait for an agent. */
export const QUEUE_WAIT_MS = 6_000;
const DEAD_NODE_MS = 4_000;
/** How long the database or Redis cannot be reached. */
const OUTAGE_MS = 1_000;

/** A port that stays the node's while it is down: the system gives none of these to clients. */
const lastingPort = async () => String(await freePort(20_000 + randomInt(10_000)));
const addresses = async () => ({ FLEET_API_PORT: await lastingPort(), FLEET_MESH_PORT: await lastingPort() });

interface PlatformNode {
  platform: TestPlatform;
  isUp: boolean;
}
/** By which the nodes reach what they share. */
interface Ways {
  database: TcpProxy;
  redis: TcpProxy;
}

/** Two nodes of one platform, which scripts share. What one script does to a node happens to all that run beside it. */
export class Nodes {
  /** When nodes were killed, and until when what was under way may be lost by it. */
  readonly kills: { at: number; until: number }[] = [];
  outages = 0;
  readonly #shared: SharedPlatform;
  readonly #secretKey: string;
  readonly #nodes: PlatformNode[];
  readonly #ways: Ways;
  /** One fault at a time. */
  #fault: Promise<void> = Promise.resolve();

  private constructor(shared: SharedPlatform, peer: TestPlatform, secretKey: string, ways: Ways) {
    this.#shared = shared;
    this.#secretKey = secretKey;
    this.#ways = ways;
    this.#nodes = [shared.platform, peer].map((platform) => ({ platform, isUp: true }));
  }

  static async start(): Promise<Nodes> {
    const secretKey = randomBytes(32).toString('base64');
    const redis = await TcpProxy.to((await redisServer()).url);
    const database = await freshDatabase();
    const wayToDatabase = await TcpProxy.to(database.url);
    const env = {
      FLEET_SECRET_KEY: secretKey,
      DATABASE_URL: wayToDatabase.urlOf(database.url),
      REDIS_URL: redis.urlOf('redis://127.0.0.1'),
      OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8',
      QUEUE_WAIT_MS: String(QUEUE_WAIT_MS),
      ...withClocks({ deadNodeMs: DEAD_NODE_MS, reconcileMs: 500 }),
    };
    const shared = await startPlatform({ ...env, ...(await addresses()) }, { database });
    const peer = await shared.startPeer({ env: await addresses() });
    return new Nodes(shared, peer, secretKey, { database: wayToDatabase, redis });
  }

  /** A new tenant, which comes in by this node, or by the other one while it is down. */
  async newTenant(): Promise<Home[]> {
    const { tenant_id, issue } = await newTenant(this.#shared.database.db(), this.#secretKey);
    const own = { tenant_id, ...(await issue()) };
    return this.#nodes.map((preferred) => {
      const node = () => [preferred, ...this.#nodes].find(({ isUp }) => isUp) ?? preferred;
      const devJson = () => ({ ...node().platform.devJson(), ...own });
      return { devJson, client: new ApiClient({ devJson }) };
    });
  }

  /** Whether a fault has happened, after which calls may fail. */
  get wereInTrouble(): boolean {
    return this.kills.length + this.outages > 0;
  }

  /** Kills a node; it is started again behind it. Resolves when it is dead. */
  kill(index: number): Promise<void> {
    return this.#oneFault(async () => {
      const node = this.#nodes[index % this.#nodes.length] as PlatformNode;
      const kill = { at: performance.now(), until: Number.POSITIVE_INFINITY };
      this.kills.push(kill);
      node.isUp = false;
      await node.platform.kill9();
      const start = async () => {
        await node.platform.start();
        node.isUp = true;
        kill.until = performance.now() + 2 * DEAD_NODE_MS;
      };
      return { end: start() };
    });
  }

  /** The database or Redis cannot be reached for a while. Resolves when it begins. */
  cut(way: 'database' | 'redis'): Promise<void> {
    return this.#oneFault(async () => {
      this.outages += 1;
      const proxy = this.#ways[way];
      proxy.shut();
      const end = delay(OUTAGE_MS).then(() => {
        proxy.isShut = false;
      });
      return { end };
    });
  }

  /** Resolves when no fault lasts. */
  async whole(): Promise<void> {
    await this.#fault;
  }

  async #oneFault(begin: () => Promise<{ end: Promise<void> }>): Promise<void> {
    const begun = this.#fault.then(begin);
    this.#fault = begun.then(({ end }) => end);
    await begun;
  }
}
