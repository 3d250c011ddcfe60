import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '../../../setup/until.js';
import type { Connected, CountingAgent, JoinOptions } from './counting-agent.js';

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'sdk', 'python', 'counting_agent.py');

/** The agent on the Python SDK, in a process of its own. */
export class PythonAgent implements CountingAgent {
  readonly connected: Connected[] = [];
  disconnections = 0;
  readonly #start: () => ChildProcess;
  readonly #folder = mkdtempSync(join(tmpdir(), 'counting-agent-'));
  #child: ChildProcess | undefined;

  constructor(python: string, { type, url, clientId, clientSecret, ca }: JoinOptions) {
    const certificates = join(this.#folder, 'ca.pem');
    writeFileSync(certificates, ca);
    const env = {
      PATH: process.env.PATH,
      AGENT_TYPE: type,
      FLEET_BASE_URL: url,
      FLEET_CLIENT_ID: clientId,
      FLEET_CLIENT_SECRET: clientSecret,
      FLEET_CA_FILE: certificates,
    };
    this.#start = () => spawn(python, ['-u', PROGRAM], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  }

  async connect(): Promise<void> {
    this.#child = this.#start();
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const event = JSON.parse(line) as Partial<Connected>;
      if (event.meshId === undefined) this.disconnections += 1;
      else this.connected.push({ meshId: event.meshId, resumed: event.resumed === true });
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
