import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { isSameProcess, processInfo } from './process-table.js';

/** A server that runs and answers. `ended` settles, with the reason in words, once it has ended. */
export interface Running {
  pid: number;
  ended: Promise<string>;
}

/** How one embedded server is started again and stopped. */
export interface Supervised {
  /** As shown to people, for example `Postgres`. */
  name: string;
  /** Starts it on the same address; resolves when it answers. Leaves nothing behind when it rejects or is aborted. */
  start(signal: AbortSignal): Promise<Running>;
  /** Signals to send in turn until it ends, each with the time to wait before the next, in milliseconds. */
  stopWith: [signal: NodeJS.Signals, graceMs: number][];
  /** Called about once a minute while it runs. */
  housekeeping(): Promise<void>;
  log: Logger;
  onLine(line: string): void;
}

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** A server that lived shorter than this before it died is not started again at once. */
const SHORT_LIFE_MS = 10_000;
const ADOPTED_POLL_MS = 250;
const HOUSEKEEPING_MS = 60_000;

/** Keeps a server running until it is stopped: when it dies it is started again, at once, then with growing pauses. */
export class Supervisor {
  readonly #program: Supervised;
  readonly #stopping = new AbortController();
  #running: Running;
  #restarted = false;
  #backoffMs = FIRST_BACKOFF_MS;
  readonly #loop: Promise<void>;
  readonly #housekeeping: NodeJS.Timeout;

  constructor(first: Running, program: Supervised) {
    this.#program = program;
    this.#running = first;
    this.#loop = this.#watch();
    this.#housekeeping = setInterval(() => {
      program.housekeeping().catch((error: unknown) => program.log.warn({ err: error }, 'housekeeping failed'));
    }, HOUSEKEEPING_MS).unref();
  }

  get pid(): number {
    return this.#running.pid;
  }

  /** Ends the server and resolves when it has ended. Calling it again waits for the same end. */
  async stop(): Promise<void> {
    clearInterval(this.#housekeeping);
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      await terminate(this.#running, this.#program.stopWith);
    }
    await this.#loop;
  }

  async #watch(): Promise<void> {
    const { name, log, onLine } = this.#program;
    while (!this.#stopping.signal.aborted) {
      const began = performance.now();
      const reason = await this.#running.ended;
      if (this.#stopping.signal.aborted) return;
      log.warn({ server: name, pid: this.#running.pid, reason }, 'embedded server ended unexpectedly');
      onLine(`${name} ended unexpectedly (${reason}); starting it again`);
      if (performance.now() - began < SHORT_LIFE_MS && this.#restarted) await this.#pause(this.#backoffMs);
      else this.#backoffMs = FIRST_BACKOFF_MS;
      await this.#restart();
    }
  }

  async #restart(): Promise<void> {
    const { name, log, onLine, start, stopWith } = this.#program;
    const signal = this.#stopping.signal;
    const began = performance.now();
    while (!signal.aborted) {
      try {
        this.#running = await start(signal);
        this.#restarted = true;
        if (signal.aborted) return await terminate(this.#running, stopWith);
        const tookMs = Math.round(performance.now() - began);
        log.info({ server: name, pid: this.#running.pid, took_ms: tookMs }, 'embedded server is back');
        return onLine(`${name} is back after ${(tookMs / 1000).toFixed(1)} s`);
      } catch (error) {
        if (signal.aborted) return;
        log.error({ server: name, err: error, retry_in_ms: this.#backoffMs }, 'embedded server did not start');
        onLine(`${name} did not start; next try in ${this.#backoffMs / 1000} s: ${errorMessage(error)}`);
        await this.#pause(this.#backoffMs);
      }
    }
  }

  /** Waits, unless it is being stopped, and makes the next pause twice as long. */
  async #pause(ms: number): Promise<void> {
    this.#backoffMs = Math.min(ms * 2, MAX_BACKOFF_MS);
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined); // only a stop rejects it
  }
}

/** Sends the signals in turn until the server has ended. */
export async function terminate(running: Running, stopWith: Supervised['stopWith']): Promise<void> {
  let ended = false;
  const end = running.ended.then(() => {
    ended = true;
  });
  for (const [signal, graceMs] of stopWith) {
    if (ended) return;
    sendSignal(running.pid, signal);
    const timer = new AbortController();
    await Promise.race([end, sleep(graceMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
    timer.abort();
  }
  if (!ended) throw new Error(`process ${running.pid} did not end`);
}

/** A server that another process started: it has no handle here, so its end is seen by looking. */
export async function adopt(pid: number): Promise<Running | undefined> {
  const info = await processInfo(pid);
  if (!info) return undefined;
  const watch = async (): Promise<string> => {
    while (await isSameProcess(info)) await sleep(ADOPTED_POLL_MS, undefined, { ref: false });
    return 'its process is gone';
  };
  return { pid, ended: watch() };
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
