/** Several nodes of one platform behind faulty proxies. The first owns the servers, which outlive it when it is killed. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../dist/embedded/free-port.js';
import { Platform } from '../platform.mjs';
import { startRedis } from '../redis.mjs';
import { FaultyProxy } from './faulty-proxy.mjs';

const ROLES = ['--roles', 'api,mesh,worker'];
/** Heap limit of a node, so that uncollected garbage does not count as growth and a leak ends the process. */
const HEAP_MIB = 256;

export const newSecretKey = () => randomBytes(32).toString('base64');

class Node {
  isRestarting = false;
  /** The mesh ids of this node, one for each process it has had, and how and when (milliseconds since 1970) each but the current one ended. */
  meshIds = [];
  ends = [];
  #harness;
  #name;
  #env;

  constructor(harness, name) {
    this.#harness = harness;
    this.#name = name;
  }

  /** Reserves ports that stay the same across restarts (`direct`), and starts the proxies through which callers and agents reach them. */
  async prepare(env) {
    const [apiPort, meshPort] = [await freePort(), await freePort()];
    this.api = await FaultyProxy.start(apiPort);
    this.mesh = await FaultyProxy.start(meshPort);
    this.#harness.onStop(async () => {
      this.api.close();
      this.mesh.close();
    });
    this.url = `http://127.0.0.1:${this.api.port}`;
    this.direct = { api: `http://127.0.0.1:${apiPort}`, mesh: `wss://127.0.0.1:${meshPort}` };
    this.#env = {
      ...env,
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`,
      FLEET_API_PORT: String(apiPort),
      FLEET_MESH_PORT: String(meshPort),
      FLEET_METRICS_PORT: '0',
      FLEET_BASE_URL: this.url,
      FLEET_MESH_URL: `https://127.0.0.1:${this.mesh.port}`,
    };
  }

  /** Starts the node with its own embedded servers. */
  async startFirst() {
    this.#harness.onStop(() => this.platform.stop());
    await this.#startWithServers();
  }

  async #startWithServers() {
    this.platform = new Platform(join(this.#harness.folder, this.#name), this.#env);
    await this.platform.ready();
  }

  /** Kills the first node and starts it again on the servers that it has left running. */
  async restartFirst() {
    this.isRestarting = true;
    this.ends.push({ method: 'kill', atMs: Date.now() });
    await this.platform.kill();
    rmSync(join(this.platform.dataDir, 'dev.json')); // it tells that the node is ready
    await this.#startWithServers();
    this.isRestarting = false;
  }

  /** Starts the node on the servers of the first node. */
  async start(env) {
    this.#env = { ...this.#env, ...env };
    this.platform = new Platform(join(this.#harness.folder, this.#name), this.#env, ROLES);
    const { platform } = this;
    this.#harness.onStop(() => platform.stop());
    await platform.readyLine();
  }

  /** An agent has connected to a mesh node of this id. To be told in the order in which the nodes began; one may be told again. */
  connected(meshId) {
    if (!this.meshIds.includes(meshId)) this.meshIds.push(meshId);
  }

  /** Whether an agent has connected to the current process. */
  get hasAgents() {
    return this.meshIds.length > this.ends.length;
  }

  /** @param {'kill' | 'stop'} method */
  async restart(method) {
    this.ends.push({ method, atMs: Date.now() });
    await this.platform[method]();
    await this.start({});
  }
}

export class Cluster {
  nodes = [];
  #turn = 0;

  /** @param {Record<string, string>} settings of all nodes */
  static async start(harness, count, settings = {}) {
    const cluster = new Cluster();
    const redis = await startRedis(harness);
    cluster.redis = redis;
    cluster.secretKey = newSecretKey();
    const shared = { ...settings, REDIS_URL: redis.url, FLEET_SECRET_KEY: cluster.secretKey };
    for (let index = 0; index < count; index += 1) {
      const node = new Node(harness, `node-${index}`);
      await node.prepare(shared);
      cluster.nodes.push(node);
    }
    const [first, ...others] = cluster.nodes;
    await first.startFirst();
    const { dataDir, dev } = first.platform;
    const tls = (name) => join(dataDir, 'tls', name);
    const servers = {
      DATABASE_URL: dev.database_url,
      TEMPORAL_ADDRESS: dev.temporal_address,
      FLEET_TLS_CERT: tls('server.pem'),
      FLEET_TLS_KEY: tls('server-key.pem'),
    };
    await Promise.all(others.map((node) => node.start(servers)));
    cluster.dev = dev;
    cluster.ca = readFileSync(dev.ca_file, 'utf8');
    return cluster;
  }

  /** Access options of agents and callers of the first tenant, one entry for each node. */
  get accessOptions() {
    return this.accessOf(this.dev);
  }

  /** The same for a credential of any tenant. */
  accessOf({ client_id: clientId, client_secret: clientSecret }) {
    return this.nodes.map(({ url }) => ({ url, clientId, clientSecret, ca: this.ca }));
  }

  get proxies() {
    return this.nodes.flatMap(({ api, mesh }) => [api, mesh]);
  }

  /**
   * Ends the next node in turn, but never the first, and starts it again.
   * @param {'kill' | 'stop'} [method] kill and stop alternate by default
   * @returns the method, or null when the node has no agents yet
   */
  async restartNext(method) {
    const others = this.nodes.slice(1);
    const node = others[this.#turn % others.length];
    if (!node?.hasAgents) return null;
    const chosen = method ?? (Math.floor(this.#turn / others.length) % 2 === 0 ? 'kill' : 'stop');
    this.#turn += 1;
    await node.restart(chosen);
    return chosen;
  }

  /** Kills the first node and starts it again. @returns whether it had agents yet; else nothing is done */
  async restartFirst() {
    const [first] = this.nodes;
    if (!first.hasAgents) return false;
    await first.restartFirst();
    return true;
  }

  /** Mesh nodes that were killed, by their ids, and when: their in-flight dispatches may be lost. */
  get killed() {
    const killed = new Map();
    for (const { meshIds, ends } of this.nodes)
      for (const [index, { method, atMs }] of ends.entries()) if (method === 'kill') killed.set(meshIds[index], atMs);
    return killed;
  }
}
