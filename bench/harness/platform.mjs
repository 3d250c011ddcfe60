/** A whole platform in a child process, as `npm start` runs it. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const START = fileURLToPath(new URL('../../dist/start.js', import.meta.url));
const READY_MS = 120_000;
const READY_LINE = /^Ready: /m;
const POLL_MS = 100;
const STOP_MS = 60_000;
/** Platform settings that must not leak from this process's environment into the measured platform. */
const SETTINGS =
  /^(FLEET_|DATABASE_|TEMPORAL_(?!CLI_PATH)|REDIS_|LLM_|OUTBOUND_|TRUST_|SEND_|QUEUE_|RESUME_|INPUT_|TENANT_|RATE_)/;

/** Connections to Postgres that a platform and each floor may hold. */
export const POOL_MAX = 20;

/** A started platform. `ready` or `readyLine` waits until it serves. */
export class Platform {
  #process;
  #outputFile;
  /** Offset in the output file at which the output of this process starts. */
  #outputFrom;

  /**
   * @param {string} dataDir created when missing
   * @param {Record<string, string>} env settings
   * @param {string[]} args of the command line, for example its roles
   */
  constructor(dataDir, env, args = []) {
    mkdirSync(dataDir, { recursive: true });
    this.dataDir = dataDir;
    this.#outputFile = join(dataDir, 'platform.out');
    const inherited = Object.entries(process.env).filter(([name]) => !SETTINGS.test(name));
    const output = openSync(this.#outputFile, 'a');
    this.#outputFrom = fstatSync(output).size;
    this.#process = spawn(process.execPath, [START, ...args], {
      env: {
        ...Object.fromEntries(inherited),
        FLEET_DATA_DIR: dataDir,
        FLEET_API_PORT: '0',
        FLEET_MESH_PORT: '0',
        FLEET_EXAMPLES: 'off',
        DATABASE_POOL_MAX: String(POOL_MAX),
        ...env,
      },
      stdio: ['ignore', output, output],
      detached: true, // Ctrl-C reaches only the benchmark
    });
    closeSync(output);
  }

  get pid() {
    return this.#process.pid;
  }

  /** Waits for the ready line of a platform that was started with `--roles` and so writes no `dev.json`. @throws as `ready` */
  async readyLine() {
    await this.#waitUntil(() => READY_LINE.test(readFileSync(this.#outputFile, 'utf8').slice(this.#outputFrom)));
  }

  /** Waits for `dev.json` and gets a token. @throws Error with the end of the output when the platform exits instead */
  async ready() {
    const devFile = join(this.dataDir, 'dev.json');
    await this.#waitUntil(() => existsSync(devFile));
    this.dev = JSON.parse(readFileSync(devFile, 'utf8'));
    this.ca = readFileSync(this.dev.ca_file, 'utf8');
    const { client_id, client_secret } = this.dev;
    this.token = (await this.post('/auth/get_token', { client_id, client_secret })).token;
  }

  /** POSTs to the API. @throws Error for an error status */
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

  async #waitUntil(isReady) {
    const deadline = performance.now() + READY_MS;
    while (!isReady()) {
      if (this.#hasExited || performance.now() > deadline) {
        throw new Error(`the platform did not start\n${readFileSync(this.#outputFile, 'utf8').slice(-2_000)}`);
      }
      await delay(POLL_MS);
    }
  }

  /** Kills the platform as a crash would. */
  async kill() {
    this.#process.kill('SIGKILL');
    while (!this.#hasExited) await delay(POLL_MS);
  }

  async stop() {
    if (this.#hasExited) return;
    this.#process.kill('SIGTERM');
    const deadline = performance.now() + STOP_MS;
    while (!this.#hasExited && performance.now() < deadline) await delay(POLL_MS);
    if (!this.#hasExited) this.#process.kill('SIGKILL');
  }

  get #hasExited() {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }
}
