/** Starts what a benchmark runs against and stops it in reverse order, also on failure and Ctrl-C. */
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Child } from './child-process.mjs';
import { Platform } from './platform.mjs';

/** The processes and servers of one benchmark run. */
export class Harness {
  #stops = [];
  #stopping;

  /** Runs `work` with a harness, then stops the harness. @returns the exit code */
  static async run(work) {
    const harness = new Harness();
    const interrupted = (signal) => {
      process.stderr.write(`\n${signal}: stopping\n`);
      void harness.stop().then(() => process.exit(130));
    };
    process.on('SIGINT', interrupted);
    process.on('SIGTERM', interrupted);
    try {
      return await work(harness);
    } catch (error) {
      if (!harness.#stopping) process.stderr.write(`${error.stack}\n`);
      return 1;
    } finally {
      await harness.stop();
    }
  }

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'fleet-bench-'));
    chmodSync(this.folder, 0o755); // Postgres may run as another user and must reach its files
    this.onStop(async () => rmSync(this.folder, { recursive: true, force: true }));
  }

  onStop(stop) {
    this.#stops.push(stop);
  }

  stop() {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  async platform(name, env) {
    const platform = new Platform(join(this.folder, name), env);
    this.onStop(() => platform.stop());
    await platform.ready();
    return platform;
  }

  /** @param {string[]} [interpreter] what runs the program; Node by default */
  async child(file, options, interpreter) {
    const child = await Child.start(file, options, interpreter);
    this.onStop(() => child.stop());
    return child;
  }

  /** A connected and a hosted echo agent, each in its own process. */
  async agents(platform) {
    const tls = (name) => readFileSync(join(platform.dataDir, 'tls', name), 'utf8');
    const connected = await this.child('harness/echo-connected.mjs', {
      cert: tls('server.pem'),
      key: tls('server-key.pem'),
    });
    const hosted = await this.child('harness/echo-hosted.mjs');
    return { connected, hosted };
  }

  async #stopAll() {
    for (let stop = this.#stops.pop(); stop; stop = this.#stops.pop()) {
      await stop().catch((error) => process.stderr.write(`not stopped cleanly: ${error.message}\n`));
    }
  }
}

/** Registers the agents with a platform: `echo` and `echo-hosted` with unlimited sessions, `echo-ten` with ten. */
export async function joinAgents(platform, { connected, hosted }) {
  const unlimited = { max_concurrent_sessions: 0 };
  await joinConnected(platform, connected, 'echo', unlimited);
  await joinConnected(platform, connected, 'echo-ten', { max_concurrent_sessions: 10 });
  await platform.post('/agents/register', { ...unlimited, agent_type: 'echo-hosted', url: hosted.ready.url });
}

async function joinConnected(platform, connected, agent_type, bounds) {
  const instance = { instance_id: `${agent_type}-1`, ...bounds };
  const { connect_url } = await platform.post('/agents/register', { agent_type, ...instance });
  const url = new URL(connect_url);
  url.searchParams.set('instance_id', instance.instance_id);
  await connected.ask('join', { url: url.href, token: platform.token, ca: platform.ca, hello: instance });
}

/** Creates a database on the server. @returns its connection string */
export async function createDatabase(serverUrl, name) {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** The process ids of the embedded servers of a platform. */
export function serverPids({ dataDir }) {
  const [postmaster] = readFileSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n');
  const temporal = JSON.parse(readFileSync(join(dataDir, 'temporal.json'), 'utf8'));
  return { postgres: Number(postmaster), temporal: temporal.pid };
}
