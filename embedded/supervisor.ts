import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { isSameProcess, processInfo } from './process-table.js';

/** A running server. `ended` resolves with the reason when it has exited. */
export interface Running {
  pid: number;
  ended: Promise<string>;
}

/** How to restart and stop one embedded server. */
export interface Supervised {
  /** Display name, for example `Postgres`. */
  name: string;
  /** Starts the server on the same address; resolves when it answers. Leaves no process when it rejects or is aborted. */
  start(signal: AbortSignal): Promise<Running>;
  /** Signals to send in turn until the server exits, each with the time to wait before the next. */
  stopWith: [signal: NodeJS.Signals, graceMs: number][];
  /** Called once a minute. */
  housekeeping(): Promise<void>;
  /** How a server that runs and does not serve is found; without it only the end of its process is. */
  watch?: {
    /** Why the server does not serve now; undefined when it does. */
    check(): Promise<string | undefined>;
    /** How long the server may not serve, in milliseconds: then it is stopped and started again. */
    unservedMaxMs: number;
    stopWith: Supervised['stopWith'];
  };
  log: Logger;
  onLine(line: string): void;
}

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** A restarted server that dies sooner than this is restarted after a pause. */
const SHORT_LIFE_MS = 10_000;
const ADOPTED_POLL_MS = 250;
const HOUSEKEEPING_MS = 60_000;
/** How often a server is looked at within the time that it may not serve. */
const LOOKS = 6;

/** Restarts a server when it dies, or no longer serves: at once, then with growing pauses. */
export class Supervisor {
  readonly #server: Supervised;
  readonly #stopping = new AbortController();
  #running: Running;
  #restarted = false;
  /** The server that was ended here because it did not serve. */
  #unserving: Running | null = null;
  /** Not between the end of a server and the start of the next one. */
  #isUp = true;
  #backoffMs = FIRST_BACKOFF_MS;
  readonly #loop: Promise<void>;
  readonly #looks: Promise<void>;
  readonly #housekeeping: NodeJS.Timeout;

  constructor(first: Running, server: Supervised) {
    this.#server = server;
    this.#running = first;
    this.#loop = this.#restartWhenEnded();
    this.#looks = this.#stopWhenStuck();
    this.#housekeeping = setInterval(() => {
      server.housekeeping().catch((error: unknown) => server.log.warn({ err: error }, 'housekeeping failed'));
    }, HOUSEKEEPING_MS).unref();
  }

  get pid(): number {
    return this.#running.pid;
  }

  /** Stops the server; resolves when it has exited. A second call waits for the same stop. */
  async stop(): Promise<void> {
    clearInterval(this.#housekeeping);
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      await terminate(this.#running, this.#server.stopWith);
    }
    await Promise.all([this.#loop, this.#looks]);
  }

  /** Ends a server that has not served for too long. */
  async #stopWhenStuck(): Promise<void> {
    const { name, log, onLine, watch } = this.#server;
    const signal = this.#stopping.signal;
    if (!watch) return;
    let looked = this.#running;
    let sinceMs = performance.now();
    while (!signal.aborted) {
      await sleep(watch.unservedMaxMs / LOOKS, undefined, { signal, ref: false }).catch(() => undefined); // aborted by a stop
      const refusal = signal.aborted ? undefined : await watch.check().catch(errorMessage);
      const serves = refusal === undefined || looked !== this.#running || !this.#isUp;
      looked = this.#running;
      if (serves) sinceMs = performance.now();
      else if (performance.now() - sinceMs >= watch.unservedMaxMs && !signal.aborted) {
        log.error({ server: name, pid: looked.pid, reason: refusal }, 'embedded server does not serve; stopping it');
        onLine(
          `${name} has not served for ${Math.round((performance.now() - sinceMs) / 1000)} s (${refusal}); stopping it`,
        );
        this.#unserving = looked;
        await terminate(looked, watch.stopWith).catch((error: unknown) => {
          log.error({ server: name, err: error }, 'embedded server did not end');
        });
      }
    }
  }

  async #restartWhenEnded(): Promise<void> {
    const { name, log, onLine } = this.#server;
    while (!this.#stopping.signal.aborted) {
      const began = performance.now();
      const reason = await this.#running.ended;
      this.#isUp = false;
      if (this.#stopping.signal.aborted) return;
      log.warn({ server: name, pid: this.#running.pid, reason }, 'embedded server ended');
      const isExpected = this.#running === this.#unserving;
      const end = isExpected ? 'has stopped; starting it again' : `exited unexpectedly (${reason}); restarting it`;
      onLine(`${name} ${end}`);
      if (performance.now() - began < SHORT_LIFE_MS && this.#restarted) await this.#pause(this.#backoffMs);
      else this.#backoffMs = FIRST_BACKOFF_MS;
      await this.#restart();
    }
  }

  async #restart(): Promise<void> {
    const { name, log, onLine, start, stopWith } = this.#server;
    const signal = this.#stopping.signal;
    const began = performance.now();
    while (!signal.aborted) {
      try {
        this.#running = await start(signal);
        this.#restarted = true;
        this.#isUp = true;
        if (signal.aborted) return await terminate(this.#running, stopWith);
        const tookMs = Math.round(performance.now() - began);
        log.info({ server: name, pid: this.#running.pid, took_ms: tookMs }, 'embedded server restarted');
        return onLine(`${name} runs again after ${(tookMs / 1000).toFixed(1)} s`);
      } catch (error) {
        if (signal.aborted) return;
        log.error({ server: name, err: error, retry_in_ms: this.#backoffMs }, 'embedded server did not start');
        onLine(`${name} did not start; next attempt in ${this.#backoffMs / 1000} s: ${errorMessage(error)}`);
        await this.#pause(this.#backoffMs);
      }
    }
  }

  /** Waits unless the supervisor stops, and doubles the next pause. */
  async #pause(ms: number): Promise<void> {
    this.#backoffMs = Math.min(ms * 2, MAX_BACKOFF_MS);
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined); // aborted by a stop
  }
}

/** Sends the signals in turn until the server has exited. */
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
  if (!ended) throw new Error(`process ${running.pid} did not exit`);
}

/** Adopts a server that another process started. It is not our child, so its end is detected by polling. */
export async function adopt(pid: number): Promise<Running | undefined> {
  const info = await processInfo(pid);
  if (!info) return undefined;
  const watch = async (): Promise<string> => {
    while (await isSameProcess(info)) await sleep(ADOPTED_POLL_MS, undefined, { ref: false });
    return 'its process has exited';
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
