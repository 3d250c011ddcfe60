/**
 * Commands and answers between the benchmark and its child processes, over Node's IPC channel; this file holds both ends. A program in another
 * language finds the channel by NODE_CHANNEL_FD: lines of JSON.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const STOP_MS = 5_000;
const NODE = [process.execPath, ...process.execArgv];

/** A child process, as the benchmark uses it. */
export class Child {
  #process;
  #pending = new Map();
  #next = 0;

  /**
   * @param {string} file path of the program, relative to `bench/`
   * @param {Record<string, unknown>} options argument of the program's `serve` callback
   * @param {string[]} interpreter what runs the program, with arguments of its own
   */
  static async start(file, options = {}, interpreter = NODE) {
    const child = new Child(file, interpreter);
    try {
      child.ready = await child.ask('start', options);
    } catch (error) {
      await child.stop();
      throw error;
    }
    return child;
  }

  constructor(file, [command, ...args]) {
    const path = fileURLToPath(new URL(`../${file}`, import.meta.url));
    // A separate process group: Ctrl-C reaches only the benchmark, which then stops its children in order.
    const options = { detached: true, stdio: ['inherit', 'inherit', 'inherit', 'ipc'] };
    this.#process = spawn(command, [...args, path], options);
    this.#process.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(`${file}: ${error}`));
    });
    this.#process.once('exit', (code, signal) => {
      for (const { reject } of this.#pending.values()) reject(new Error(`${file} ended with ${signal ?? code}`));
      this.#pending.clear();
    });
  }

  get pid() {
    return this.#process.pid;
  }

  /** @returns the result of the program's command of this name */
  ask(command, options) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#pending.set(id, { resolve, reject });
      this.#process.send({ id, command, options }, (error) => {
        if (error) reject(error);
      });
    });
  }

  /** Kills the program as a crash would. */
  async kill() {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
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
 * Runs in the child: answers the benchmark's commands. The process exits when the channel closes.
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
