import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clocks } from '../../../runtime/clocks.js';
import { until } from '../until.js';
import { ApiClient } from './api-client.js';
import { allEnded, killEach, processTree, registerProcess, type TreeProcess } from './process-tree.js';

const START = fileURLToPath(new URL('../../../dist/start.js', import.meta.url));
/** The embedded servers come up inside this too. */
const READY_TIMEOUT_MS = 90_000;
const STOP_TIMEOUT_MS = 45_000;

/** `dev.json`. */
export interface DevJson {
  base_url: string;
  mesh_url: string;
  temporal_ui_url: string | null;
  temporal_address: string;
  database_url: string;
  ca_file: string;
  client_id: string;
  client_secret: string;
  /** For agents, of any type; empty for one with `--roles`. */
  agent_client_id: string;
  agent_client_secret: string;
  tenant_id: string;
}

export interface PlatformOptions {
  /** Its data directory; made when missing. */
  dataDir: string;
  /** Settings beside those that every test platform has. */
  env?: Record<string, string>;
  /** Whom its client speaks for; the platform's first credential when absent. */
  credential?: { client_id: string; client_secret: string };
  /** Runs these roles only, for example `mesh,worker`, without `dev.json`; all of `npm start` when absent. */
  roles?: string;
  /** The `start.js` of another build; this one's when absent. */
  start?: string;
  /** Where the pid is noted for the clean-up of a run that fails. */
  register?: string;
}

/** The whole platform as a process of its own, as `npm start` runs it. */
export class TestPlatform {
  readonly dataDir: string;
  readonly client: ApiClient;
  readonly #options: PlatformOptions;
  #pid: number | undefined;
  #exit: Promise<string> = Promise.resolve('not started');
  #exited: string | undefined = 'not started';
  #devJson: DevJson | undefined;

  constructor(options: PlatformOptions) {
    this.#options = options;
    this.dataDir = options.dataDir;
    this.client = new ApiClient(this, options.credential);
  }

  /** Addresses and the first credential, as of the last start. */
  devJson(): DevJson {
    if (!this.#devJson) throw new Error('the platform has not been ready yet');
    return this.#devJson;
  }

  get baseUrl(): string {
    return this.devJson().base_url;
  }

  get pid(): number {
    if (this.#pid === undefined) throw new Error('the platform has not been started');
    return this.#pid;
  }

  /** How it ended, in words; undefined while it runs. */
  get ended(): string | undefined {
    return this.#exited;
  }

  /** Everything it has written, since the first start. */
  log(): string {
    const paths = [join(this.dataDir, 'platform.out'), join(this.dataDir, 'logs', 'platform.log')];
    return paths.map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : '')).join('\n');
  }

  /** Where its metrics are, by the line that comes right after `dev.json`. */
  metricsUrl(): Promise<string> {
    return until(() => /"metrics_url":"([^"]+)"/.exec(this.log())?.[1], { what: 'the line of the ready platform' });
  }

  /** Starts it and waits until it says that it is ready. */
  async start(): Promise<this> {
    if (this.#options.roles) return this.#startRoles();
    const devFile = join(this.dataDir, 'dev.json');
    mkdirSync(this.dataDir, { recursive: true, mode: 0o755 });
    rmSync(devFile, { force: true });
    await this.#spawn();
    try {
      this.#devJson = await until(() => this.#readWhenReady(devFile), {
        timeoutMs: READY_TIMEOUT_MS,
        what: 'the ready platform',
      });
    } catch (error) {
      await this.kill9();
      throw new Error(`the platform did not start\n${this.log().slice(-4_000)}`, { cause: error });
    }
    if (this.#exited) throw new Error(`the platform ended at its start: ${this.#exited}\n${this.log().slice(-4_000)}`);
    return this;
  }

  /** Ctrl-C's way: drains and ends. Rejects when it does not, after killing it. */
  async stop(): Promise<void> {
    if (this.#exited) return;
    process.kill(this.pid, 'SIGTERM');
    try {
      await until(() => this.#exited, { timeoutMs: STOP_TIMEOUT_MS, what: 'the end of the platform' });
    } catch (error) {
      await this.kill9();
      throw error;
    }
    if (this.#exited !== 'exit code 0')
      throw new Error(`the platform ended with ${this.#exited}\n${this.log().slice(-2_000)}`);
  }

  /** `kill -9` of the process and of everything that it started: parents first, so that nothing is started again. */
  async kill9(): Promise<void> {
    const tree = await processTree(this.pid);
    killEach(tree);
    await allEnded(tree);
    await this.#exit;
  }

  /** Stops the process where it is, as a pause of its machine would; its sockets stay open and fill. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  /** Lets it go on after `pause`. */
  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** The processes below it whose command line fits, for example the embedded Postgres. */
  async children(command: RegExp): Promise<TreeProcess[]> {
    return (await processTree(this.pid)).filter((process) => process.pid !== this.pid && command.test(process.command));
  }

  /** One with `--roles` says on its standard output that it is ready, and where. */
  async #startRoles(): Promise<this> {
    mkdirSync(this.dataDir, { recursive: true, mode: 0o755 });
    const output = join(this.dataDir, 'platform.out');
    const begin = existsSync(output) ? readFileSync(output, 'utf8').length : 0;
    await this.#spawn();
    const [, baseUrl = '', meshUrl = ''] = await until(
      () => this.#exited || /^Ready: .*; API (\S+), mesh (\S+)$/m.exec(readFileSync(output, 'utf8').slice(begin)),
      { timeoutMs: READY_TIMEOUT_MS, what: 'the ready roles' },
    );
    if (this.#exited) throw new Error(`the roles ended at their start: ${this.#exited}\n${this.log().slice(-4_000)}`);
    const { client_id = '', client_secret = '' } = this.#options.credential ?? {};
    this.#devJson = {
      base_url: baseUrl,
      mesh_url: meshUrl,
      temporal_ui_url: null,
      temporal_address: '',
      database_url: '',
      ca_file: join(this.dataDir, 'tls', 'ca.pem'),
      client_id,
      client_secret,
      agent_client_id: '',
      agent_client_secret: '',
      tenant_id: '',
    };
    return this;
  }

  async #spawn(): Promise<void> {
    const output = openSync(join(this.dataDir, 'platform.out'), 'a');
    const roles = this.#options.roles ? ['--roles', this.#options.roles] : [];
    const start = this.#options.start ?? START;
    const child = spawn(process.execPath, ['--enable-source-maps', start, ...roles], {
      cwd: this.dataDir,
      env: { ...inherited(), ...BASE_SETTINGS, FLEET_DATA_DIR: this.dataDir, ...this.#options.env },
      stdio: ['ignore', output, output],
      detached: true,
    });
    closeSync(output);
    this.#exited = undefined;
    this.#exit = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        this.#exited = signal ?? `exit code ${code}`;
        resolve(this.#exited);
      });
    });
    if (child.pid === undefined) throw new Error(`cannot run ${start}: ${await this.#exit}`);
    this.#pid = child.pid;
    if (this.#options.register) await registerProcess(this.#options.register, child.pid);
  }

  #readWhenReady(devFile: string): DevJson | undefined {
    if (this.#exited) return {} as DevJson; // nothing to wait for; start() reports it
    return existsSync(devFile) ? (JSON.parse(readFileSync(devFile, 'utf8')) as DevJson) : undefined;
  }
}

const BASE_SETTINGS = {
  FLEET_API_PORT: '0',
  FLEET_MESH_PORT: '0',
  FLEET_METRICS_PORT: '0',
  FLEET_EXAMPLES: 'off',
  FLEET_STOP_DELAY_MS: '0',
  DATABASE_POOL_MAX: '10',
  WATCH_AFTER_MS: '2000',
};

/** The setting that makes clocks of a platform shorter. */
export function withClocks(clocks: Partial<Clocks>): { FLEET_CLOCKS: string } {
  return { FLEET_CLOCKS: JSON.stringify(clocks) };
}

/** The surroundings without any setting of a platform that the developer may have exported. */
function inherited(): NodeJS.ProcessEnv {
  const settings =
    /^(FLEET_|DATABASE_|TEMPORAL_(?!CLI_PATH)|REDIS_|LLM_|EMBEDDINGS_|KNOWLEDGE_|OUTBOUND_|TRUST_|SEND_|QUEUE_|RESUME_|INPUT_|TENANT_|RATE_)/;
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !settings.test(name) && name !== 'NODE_ENV'),
  );
}
