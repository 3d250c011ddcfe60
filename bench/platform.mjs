/** A whole platform as a process of its own, as `npm start` runs it. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const START = fileURLToPath(new URL('../dist/start.js', import.meta.url));
const READY_MS = 120_000;
const READY_LINE = /^Ready: /m;
const LOOK_MS = 100;
const STOP_MS = 60_000;
/** Settings of a platform that the surroundings may hold: they would change what is measured. */
const SETTINGS =
  /^(FLEET_|DATABASE_|TEMPORAL_(?!CLI_PATH)|REDIS_|LLM_|OUTBOUND_|TRUST_|SEND_|QUEUE_|RESUME_|INPUT_|TENANT_|RATE_)/;

/** Connections to Postgres that a platform and each floor may hold. */
export const POOL_MAX = 20;

/** One that was started and may be ready. */
export class Platform {
  #process;
  #outputFile;
  /** Where this process's own output begins. */
  #outputFrom;

  /**
   * @param {string} dataDir made when missing
   * @param {Record<string, string>} env settings
   * @param {string[]} args of the command line, for example its roles
   */
  constructor(dataDir, env, args = []) {
    mkdirSync(dataDir, { recursive: true });
    this.dataDir = dataDir;
    this.#outputFile = join(dataDir, 'platform.out');
    const surroundings = Object.entries(process.env).filter(([name]) => !SETTINGS.test(name));
    const output = openSync(this.#outputFile, 'a');
    this.#outputFrom = fstatSync(output).size;
    this.#process = spawn(process.execPath, [START, ...args], {
      env: {
        ...Object.fromEntries(surroundings),
        FLEET_DATA_DIR: dataDir,
        FLEET_API_PORT: '0',
        FLEET_MESH_PORT: '0',
        FLEET_EXAMPLES: 'off',
        DATABASE_POOL_MAX: String(POOL_MAX),
        ...env,
      },
      stdio: ['ignore', output, output],
      detached: true, // Ctrl-C reaches the benchmark only
    });
    closeSync(output);
  }

  get pid() {
    return this.#process.pid;
  }

  /** Waits until one with roles of its own, which writes no `dev.json`, says that it is ready. @throws as `ready` */
  async answers() {
    await this.#until(() => READY_LINE.test(readFileSync(this.#outputFile, 'utf8').slice(this.#outputFrom)));
  }

  /** Waits for `dev.json`. @throws with the last it has written, when it ends instead */
  async ready() {
    const devFile = join(this.dataDir, 'dev.json');
    await this.#until(() => existsSync(devFile));
    this.dev = JSON.parse(readFileSync(devFile, 'utf8'));
    this.ca = readFileSync(this.dev.ca_file, 'utf8');
    const { client_id, client_secret } = this.dev;
    this.token = (await this.post('/auth/get_token', { client_id, client_secret })).token;
  }

  /** One call of its API. @throws when it is refused */
  async post(path, body) {
    const response = await fetch(`${this.dev.base_url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(this.token && { authorization: `Bearer ${this.token}` }) },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }

  async #until(isReady) {
    const until = performance.now() + READY_MS;
    while (!isReady()) {
      if (this.#hasEnded || performance.now() > until) {
        throw new Error(`the platform did not start\n${readFileSync(this.#outputFile, 'utf8').slice(-2_000)}`);
      }
      await delay(LOOK_MS);
    }
  }

  /** As a crash would end it. */
  async kill() {
    this.#process.kill('SIGKILL');
    while (!this.#hasEnded) await delay(LOOK_MS);
  }

  async stop() {
    if (this.#hasEnded) return;
    this.#process.kill('SIGTERM');
    const until = performance.now() + STOP_MS;
    while (!this.#hasEnded && performance.now() < until) await delay(LOOK_MS);
    if (!this.#hasEnded) this.#process.kill('SIGKILL');
  }

  get #hasEnded() {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }
}
