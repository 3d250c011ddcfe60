import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, SILENT_LOG } from '../../../../sdk/index.js';
import { until } from '../../../setup/until.js';

/** An agent on either SDK that counts, one number a chunk, until it is told that it is enough. */
export interface CountingAgent {
  /** Its connections so far. */
  readonly connected: readonly { meshId: string; resumed: boolean }[];
  readonly disconnections: number;
  /** Resolves at its first connection. */
  connect(): Promise<unknown>;
  enough(): void;
  close(): Promise<unknown>;
}

/** Where an agent joins. `ca`: the certificates, in PEM. */
export interface JoinOptions {
  type: string;
  url: string;
  clientId: string;
  clientSecret: string;
  ca: string;
}

/** The agent on the TypeScript SDK, in this process. */
export class TypeScriptAgent implements CountingAgent {
  readonly connected: { meshId: string; resumed: boolean }[] = [];
  disconnections = 0;
  readonly #agent: Agent;
  #isEnough = false;

  constructor(options: JoinOptions) {
    const instanceId = `${options.type}-1`;
    this.#agent = new Agent({ ...options, instanceId, drainOnSignals: false, log: SILENT_LOG });
    this.#agent.on('connected', (connection) => this.connected.push(connection));
    this.#agent.on('disconnected', () => {
      this.disconnections += 1;
    });
    this.#agent.onMessage(async (task) => {
      for (let number = 0; !this.#isEnough; number += 1) {
        await task.stream(`${number} `);
        await sleep(20);
      }
      return undefined;
    });
  }

  connect = () => this.#agent.connect();
  close = () => this.#agent.close(0).catch(() => undefined);
  enough = () => {
    this.#isEnough = true;
  };
}

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'sdk', 'python', 'counting_agent.py');

/** The agent on the Python SDK, in a process of its own. */
export class PythonAgent implements CountingAgent {
  readonly connected: { meshId: string; resumed: boolean }[] = [];
  disconnections = 0;
  readonly #start: () => ChildProcess;
  readonly #folder = mkdtempSync(join(tmpdir(), 'counting-agent-'));
  #child: ChildProcess | undefined;

  constructor(python: string, { type, url, clientId, clientSecret, ca }: JoinOptions) {
    const certificates = join(this.#folder, 'ca.pem');
    writeFileSync(certificates, ca);
    const credential = { FLEET_CLIENT_ID: clientId, FLEET_CLIENT_SECRET: clientSecret };
    const access = { FLEET_BASE_URL: url, FLEET_CA_FILE: certificates, ...credential };
    const env = { PATH: process.env.PATH, AGENT_TYPE: type, ...access };
    this.#start = () => spawn(python, ['-u', PROGRAM], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  }

  async connect(): Promise<void> {
    this.#child = this.#start();
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { meshId, resumed = false } = JSON.parse(line) as { meshId?: string; resumed?: boolean };
      if (meshId === undefined) this.disconnections += 1;
      else this.connected.push({ meshId, resumed });
    });
    await until(() => this.connected.length > 0, { what: 'the first connection' });
  }

  enough(): void {
    this.#child?.stdin?.write('enough\n');
  }

  async close(): Promise<void> {
    const exited = this.#child && once(this.#child, 'exit');
    this.#child?.kill('SIGKILL');
    await exited;
    rmSync(this.#folder, { recursive: true });
  }
}
