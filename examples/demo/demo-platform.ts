import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type DevFile, readDevFile } from '../platform-access.js';
import { killTree } from './process-tree.js';

const START = fileURLToPath(new URL('../../start.js', import.meta.url));
/** A first start may have to download and build its servers. */
const READY_TIMEOUT_MS = 900_000;
const STOP_TIMEOUT_MS = 60_000;
const POLL_MS = 200;
const LINES_KEPT = 30;
const WELCOME = 'The agent fleet platform is ready.';

/** A platform that the demo starts, stops, and starts again. */
export class DemoPlatform {
  readonly #directory: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #onLine: (line: string) => void;
  readonly #lastLines: string[] = [];
  #child: ChildProcess | null = null;
  #isStopping = false;
  #isClosed = false;

  /** @param onLine called with each line that the platform prints while it starts */
  constructor(directory: string, environment: NodeJS.ProcessEnv, onLine: (line: string) => void) {
    this.#directory = directory;
    this.#environment = { ...environment, FLEET_DATA_DIR: directory };
    this.#onLine = onLine;
  }

  /** The last printed lines, to explain a failure. */
  get lastLines(): readonly string[] {
    return this.#lastLines;
  }

  /** Starts the platform; resolves when it is ready. */
  async start(): Promise<DevFile> {
    if (this.#isClosed) throw new Error('the demo is ending');
    // A separate process group: Ctrl-C in a terminal reaches only the demo, which then stops the platform.
    const child = spawn(process.execPath, [START], {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    this.#isStopping = false;
    let isStarting = true;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.#keep(line);
        if (line.includes(WELCOME)) isStarting = false;
        if (isStarting && line.trim() !== '') this.#onLine(line);
      });
    }
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while (Date.now() < deadline && isRunning(child)) {
      const dev = await readDevFile(this.#directory);
      if (dev && !isStarting) return dev;
      await delay(POLL_MS);
    }
    throw new Error(isRunning(child) ? 'the platform was not ready in time' : 'the platform did not start');
  }

  /** Stops the platform like Ctrl-C; kills it after a minute. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (!child || !isRunning(child)) return;
    const exited = once(child, 'exit');
    if (!this.#isStopping) child.kill('SIGTERM'); // only once
    this.#isStopping = true;
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(kill);
  }

  /** Kills the platform and everything that it started, as a crash of the machine would. @returns how many processes were killed */
  async kill(): Promise<number> {
    const child = this.#child;
    if (!child?.pid || !isRunning(child)) throw new Error('the platform does not run');
    const exited = once(child, 'exit');
    const killed = await killTree(child.pid);
    await exited;
    await rm(join(this.#directory, 'dev.json'), { force: true });
    return killed;
  }

  /** Stops the platform and prevents another start. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.stop();
  }

  #keep(line: string): void {
    this.#lastLines.push(line);
    if (this.#lastLines.length > LINES_KEPT) this.#lastLines.shift();
  }
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
