import { setImmediate as nextTurn } from 'node:timers/promises';
import { settledWithin } from '../runtime/settled-within.js';

/** Calls, and characters of JSON, in one statement. */
const CALLS_MAX = 32;
const CHARACTERS_MAX = 1024 * 1024;
/** Of more waiting calls than this, half go: the process works on their results while the database works on the other half. */
const WHOLE_MAX = 8;
/** The next statement starts at the latest this long after the one before, whose connection may be dead. */
const WAIT_MS = 1_000;

interface WaitingCall<Row> {
  json: string;
  resolve(row: Row): void;
  reject(error: unknown): void;
}

/**
 * Group commit: calls of one kind that arrive while a statement is under way share the next one, with one round trip, one transaction and
 * one commit. A call that arrives alone goes at once. If a call fails the statement, or would have to wait for a lock, all of them are
 * undone and each is repeated on its own, beside the next statement. If the outcome of a statement is unknown, its calls fail and each
 * waiting call goes on its own, so that they all learn at once that the database is away.
 */
export class Batcher<Row> {
  readonly #run: (calls: string, waitForLocks: boolean) => Promise<Row[]>;
  readonly #isUndone: (error: unknown) => boolean;
  #waiting: WaitingCall<Row>[] = [];
  #busy = false;
  /** Whether the last statement had several calls. */
  #sharing = false;

  /**
   * @param run executes a JSON array of calls, all or none, and returns a row for each in its order
   * @param isUndone whether an error guarantees that nothing was written
   */
  constructor(run: (calls: string, waitForLocks: boolean) => Promise<Row[]>, isUndone: (error: unknown) => boolean) {
    this.#run = run;
    this.#isUndone = isUndone;
  }

  /** @param json one call, as a JSON object */
  call(json: string): Promise<Row> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ json, resolve, reject });
      if (!this.#busy) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#busy = true;
    // While calls share statements, requests that have arrived by now join the next one.
    if (this.#sharing) await nextTurn();
    while (this.#waiting.length > 0) {
      const calls = this.#take();
      this.#sharing = calls.length > 1;
      await settledWithin(this.#runShared(calls), WAIT_MS);
      if (this.#waiting.length > 0) await nextTurn();
    }
    this.#busy = false;
  }

  #take(): WaitingCall<Row>[] {
    const waiting = this.#waiting.length;
    const limit = Math.min(CALLS_MAX, waiting > WHOLE_MAX ? Math.ceil(waiting / 2) : waiting);
    let count = 0;
    let characters = 0;
    for (const { json } of this.#waiting) {
      characters += json.length;
      if (count > 0 && (count === limit || characters > CHARACTERS_MAX)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #runShared(calls: WaitingCall<Row>[]): Promise<void> {
    try {
      const rows = await this.#run(`[${calls.map(({ json }) => json).join(',')}]`, false);
      calls.forEach((call, index) => {
        call.resolve(rows[index] as Row);
      });
    } catch (error) {
      const isUndone = this.#isUndone(error);
      if (!isUndone) for (const call of calls) call.reject(error);
      for (const call of isUndone ? calls : this.#waiting.splice(0)) void this.#runAlone(call);
    }
  }

  async #runAlone(call: WaitingCall<Row>): Promise<void> {
    try {
      const [row] = await this.#run(`[${call.json}]`, true);
      call.resolve(row as Row);
    } catch (error) {
      call.reject(error);
    }
  }
}
