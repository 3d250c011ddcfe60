import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { settledWithin } from '../runtime/settled-within.js';
import { isDatabaseUnavailable, isOutdated, isRetryable, isUndone, unavailable } from './errors.js';

/** The columns of a row as Postgres writes them in text. */
type Fields = (string | null)[];

/** A statement that is a whole transaction, and the parser of its rows. */
export interface Statement<Row> {
  /** Each connection prepares it once under this name. */
  name: string;
  text: string;
  /** @param fields the columns in the order of the statement */
  row(fields: Fields): Row;
}

const parseTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ, 'text');

/** A `timestamptz` that is not NULL, as Postgres writes it. */
export function timeOf(field: string | null | undefined): Date {
  return parseTime(field ?? '') as Date;
}

/** The methods of the driver's connection that write protocol messages, with their actual arguments. */
interface Wire {
  stream: { cork(): void; uncork(): void };
  parsedStatements: Record<string, string | undefined>;
  parse(message: { name: string; text: string }): void;
  bind(message: { statement: string; values: string[] }): void;
  execute(message: Record<string, never>): void;
  sync(): void;
}

/**
 * One execution of a statement, as a custom query of the driver. Unlike the driver's `Query` it requests no description of the columns and
 * copies nothing, which is much of the process's work on a short statement.
 */
class Execution implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  /** Called once, with the fields of each row. The driver replaces it to add its time limit. */
  callback: (error: unknown, rows?: Fields[]) => void;
  readonly #values: string[];
  readonly #rows: Fields[] = [];

  constructor(
    { name, text }: Pick<Statement<unknown>, 'name' | 'text'>,
    values: string[],
    callback: (error: unknown, rows?: Fields[]) => void,
  ) {
    this.name = name;
    this.text = text;
    this.#values = values;
    this.callback = callback;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    wire.stream.cork();
    try {
      if (wire.parsedStatements[this.name] === undefined) wire.parse({ name: this.name, text: this.text });
      wire.bind({ statement: this.name, values: this.#values });
      wire.execute({});
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
  }

  handleDataRow({ fields }: { fields: Fields }): void {
    this.#rows.push(fields);
  }

  /** The caller counts the rows. */
  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback(null, this.#rows);
  }

  handleError(error: unknown): void {
    this.callback(error);
  }
}

async function execute<Row>(client: pg.PoolClient, statement: Statement<Row>, values: string[]): Promise<Row[]> {
  const rows = await new Promise<(string | null)[][]>((resolve, reject) => {
    client.query(new Execution(statement, values, (error, found) => (found ? resolve(found) : reject(error))));
  });
  return rows.map((fields) => statement.row(fields));
}

/** Runs one statement, which is a whole transaction. @throws PlatformError SERVICE_UNAVAILABLE */
export async function callOnce<Row>(pool: pg.Pool, query: (client: pg.PoolClient) => Promise<Row[]>): Promise<Row[]> {
  let client: pg.PoolClient | undefined;
  let broken: Error | undefined;
  try {
    client = await pool.connect();
    return await query(client);
  } catch (error) {
    const away = isDatabaseUnavailable(error);
    // The connection is discarded unless the server itself reported the error, and for an outdated plan.
    if (away || !isUndone(error) || isOutdated(error)) broken = error as Error;
    throw away ? unavailable(error) : error;
  } finally {
    client?.release(broken);
  }
}

/** Retries for outdated plans: each connection of a pool may have one. */
const OUTDATED_PLANS_MAX = 50;

/** Repeats a transaction after a deadlock, a serialization failure or an outdated plan. */
export async function retried<T>(run: () => Promise<T>): Promise<T> {
  for (let failures = 0, outdated = 0; ; ) {
    try {
      return await run();
    } catch (error) {
      if (isOutdated(error)) outdated += 1;
      else failures += 1;
      if (!isRetryable(error) || failures === 3 || outdated > OUTDATED_PLANS_MAX) throw error;
    }
  }
}

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

/** Executes statements in batches on a pool, with one batcher for each statement. */
export function createBatches(pool: pg.Pool): <Row>(statement: Statement<Row>, call: object) => Promise<Row> {
  const batchers = new Map<string, Batcher<unknown>>();
  const batcherOf = (statement: Statement<unknown>) => {
    const run = (calls: string, waitForLocks: boolean) =>
      retried(() => callOnce(pool, (client) => execute(client, statement, [calls, String(waitForLocks)])));
    const made = new Batcher<unknown>(run, isUndone);
    batchers.set(statement.name, made);
    return made;
  };
  return <Row>(statement: Statement<Row>, call: object) =>
    (batchers.get(statement.name) ?? batcherOf(statement)).call(JSON.stringify(call)) as Promise<Row>;
}
