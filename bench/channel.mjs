/** Both ends of the talk between the benchmark and a process of its own: one command, one answer, over Node's IPC channel. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const STOP_MS = 5_000;

/** A process of the benchmark, seen from the benchmark. */
export class Child {
  #process;
  #waiting = new Map();
  #next = 0;

  /**
   * @param {string} file beside this one
   * @param {Record<string, unknown>} options handed to the program's `serve`
   */
  static async start(file, options = {}) {
    const child = new Child(file);
    try {
      child.ready = await child.ask('start', options);
    } catch (error) {
      await child.stop();
      throw error;
    }
    return child;
  }

  constructor(file) {
    // A process group of its own: Ctrl-C reaches the benchmark only, which ends everything in order.
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), { detached: true });
    this.#process.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(`${file}: ${error}`));
    });
    this.#process.once('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${file} ended with ${signal ?? code}`));
      this.#waiting.clear();
    });
  }

  get pid() {
    return this.#process.pid;
  }

  /** @returns what the program's command of this name gives */
  ask(command, options) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject });
      this.#process.send({ id, command, options }, (error) => {
        if (error) reject(error);
      });
    });
  }

  async stop() {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(timer);
  }
}

/**
 * Answers the benchmark's commands; the process ends with the channel.
 * @param {(options: object) => Promise<{ ready?: unknown, commands?: Record<string, (options: any) => unknown> }>} start
 */
export function serve(start) {
  let commands = {
    start: async (options) => {
      const { ready, commands: others = {} } = await start(options);
      commands = others;
      return ready;
    },
  };
  process.on('message', async ({ id, command, options }) => {
    try {
      process.send({ id, result: await commands[command](options) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
  });
  process.on('disconnect', () => process.exit());
}
