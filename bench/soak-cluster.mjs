/** Several nodes of one platform behind bad networks. The first brings the servers and stays; the others die and come back. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../dist/embedded/free-port.js';
import { FaultyProxy } from './faulty-proxy.mjs';
import { Platform } from './platform.mjs';

const ROLES = ['--roles', 'api,mesh,worker'];
/** Of a node's heap: garbage that nobody has collected yet is not to be taken for growth, and a leak ends the process. */
const HEAP_MIB = 256;

/** A Redis of its own, with nothing on disk. @returns its address */
async function startRedis(harness) {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  harness.onStop(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  await new Promise((resolve, reject) => {
    child.once('error', reject); // not installed: Debian's package is redis-server
    child.stdout.on('data', (text) => String(text).includes('Ready to accept') && resolve());
  });
  return `redis://127.0.0.1:${port}`;
}

class Node {
  /** Ids of the mesh node in its lives so far, in order, and how each life but the last ended. */
  meshIds = [];
  ends = [];
  #harness;
  #name;
  #env;

  constructor(harness, name) {
    this.#harness = harness;
    this.#name = name;
  }

  /** Its ports stay the same in all its lives, and callers and agents reach it through the proxies before them. */
  async prepare(env) {
    const [apiPort, meshPort] = [await freePort(), await freePort()];
    this.api = await FaultyProxy.start(apiPort);
    this.mesh = await FaultyProxy.start(meshPort);
    this.#harness.onStop(async () => {
      this.api.close();
      this.mesh.close();
    });
    this.url = `http://127.0.0.1:${this.api.port}`;
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

  /** With servers of its own. */
  async startFirst() {
    this.platform = await this.#harness.platform(this.#name, this.#env);
  }

  /** On the servers of the first. */
  async start(more) {
    this.#env = { ...this.#env, ...more };
    this.platform = new Platform(join(this.#harness.folder, this.#name), this.#env, ROLES);
    const { platform } = this;
    this.#harness.onStop(() => platform.stop());
    await platform.answers();
  }

  connected(meshId) {
    if (this.meshIds.at(-1) !== meshId) this.meshIds.push(meshId);
  }

  /** Whether an agent has connected to it in this life. */
  get isKnown() {
    return this.meshIds.length > this.ends.length;
  }

  /** @param {'kill' | 'stop'} how */
  async restart(how) {
    this.ends.push(how);
    await this.platform[how]();
    await this.start({});
  }
}

export class Cluster {
  nodes = [];
  #turn = 0;

  static async start(harness, count) {
    const cluster = new Cluster();
    const shared = { REDIS_URL: await startRedis(harness), FLEET_SECRET_KEY: randomBytes(32).toString('base64') };
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
    for (const node of others) await node.start(servers);
    cluster.dev = dev;
    cluster.ca = readFileSync(dev.ca_file, 'utf8');
    return cluster;
  }

  /** How agents and callers reach each node. */
  get places() {
    const { client_id: clientId, client_secret: clientSecret } = this.dev;
    return this.nodes.map(({ url }) => ({ url, clientId, clientSecret, ca: this.ca }));
  }

  get proxies() {
    return this.nodes.flatMap(({ api, mesh }) => [api, mesh]);
  }

  /** Ends one node and starts it again; each in its turn, killed and stopped in turns. @returns what was done, or null */
  async restartNext() {
    const others = this.nodes.slice(1);
    const node = others[this.#turn % others.length];
    if (!node?.isKnown) return null;
    const how = Math.floor(this.#turn / others.length) % 2 === 0 ? 'kill' : 'stop';
    this.#turn += 1;
    await node.restart(how);
    return how;
  }

  /** Mesh nodes that were killed: what they had in hand may be lost. */
  get killedMeshIds() {
    return this.nodes.flatMap(({ meshIds, ends }) => meshIds.filter((_, life) => ends[life] === 'kill'));
  }
}
