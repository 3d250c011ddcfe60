import { setImmediate as nextTurn } from 'node:timers/promises';
import { settledWithin } from '../runtime/settled-within.js';

/** Calls that share a statement at most, and how much text of them. */
const CALLS_MAX = 32;
const CHARACTERS_MAX = 1024 * 1024;
/** Of more calls than this, half go at once: while the database works on those, the process works on what became of the others. */
const TOGETHER_MAX = 8;
/** Milliseconds after which a statement is no longer waited for: its connection may be dead, and what comes next has another. */
const WAIT_MS = 1_000;

interface Waiting<Row> {
  json: string;
  resolve(row: Row): void;
  reject(error: unknown): void;
}

/**
 * Lets calls of one kind that come while another is under way share the next statement: one round trip, one transaction and one commit
 * for all of them (group commit). A call that comes alone goes at once. Where one fails the statement, or would have to wait for a lock,
 * all are undone and each is made again by itself, beside what comes next. Where nobody knows what became of it, those that shared it fail,
 * and those that wait go by themselves: they find out about a database that is away at once, not one batch after the other.
 */
export class Batcher<Row> {
  readonly #run: (calls: string, waitForLocks: boolean) => Promise<Row[]>;
  readonly #isUndone: (error: unknown) => boolean;
  #waiting: Waiting<Row>[] = [];
  #busy = false;
  /** Whether the statement before was of several calls. */
  #sharing = false;

  /**
   * @param run gives a row for each call of a JSON array, in its order; all of them or none are done. `waitForLocks`: whether it may wait for locks
   * @param isUndone whether an error says that nothing was done
   */
  constructor(run: (calls: string, waitForLocks: boolean) => Promise<Row[]>, isUndone: (error: unknown) => boolean) {
    this.#run = run;
    this.#isUndone = isUndone;
  }

  /** @param json one call, as text of a JSON object */
  call(json: string): Promise<Row> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ json, resolve, reject });
      if (!this.#busy) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#busy = true;
    // Where calls come together, what else has arrived by now is read first.
    if (this.#sharing) await nextTurn();
    while (this.#waiting.length > 0) {
      const calls = this.#take();
      this.#sharing = calls.length > 1;
      await settledWithin(this.#together(calls), WAIT_MS);
      if (this.#waiting.length > 0) await nextTurn();
    }
    this.#busy = false;
  }

  #take(): Waiting<Row>[] {
    const waiting = this.#waiting.length;
    const most = Math.min(CALLS_MAX, waiting > TOGETHER_MAX ? Math.ceil(waiting / 2) : waiting);
    let count = 0;
    let characters = 0;
    for (const { json } of this.#waiting) {
      characters += json.length;
      if (count > 0 && (count === most || characters > CHARACTERS_MAX)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #together(calls: Waiting<Row>[]): Promise<void> {
    try {
      const rows = await this.#run(`[${calls.map(({ json }) => json).join(',')}]`, false);
      calls.forEach((call, place) => {
        call.resolve(rows[place] as Row);
      });
    } catch (error) {
      const isUndone = this.#isUndone(error);
      if (!isUndone) for (const call of calls) call.reject(error);
      for (const call of isUndone ? calls : this.#waiting.splice(0)) void this.#alone(call);
    }
  }

  async #alone(call: Waiting<Row>): Promise<void> {
    try {
      const [row] = await this.#run(`[${call.json}]`, true);
      call.resolve(row as Row);
    } catch (error) {
      call.reject(error);
    }
  }
}
