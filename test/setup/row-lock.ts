import pg from 'pg';

const WAITERS =
  'SELECT count(*)::integer AS count FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))';

/** Rows or tables that a test holds, so that whoever wants to change the rows, or read the tables, waits until it lets go. */
export class RowLock {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** @param select the rows; `FOR UPDATE` is added */
  static on(databaseUrl: string, select: string, values: unknown[]): Promise<RowLock> {
    return RowLock.#by(databaseUrl, `${select} FOR UPDATE`, values);
  }

  /** Nobody reads or writes the tables. */
  static onTables(databaseUrl: string, tables: string[]): Promise<RowLock> {
    return RowLock.#by(databaseUrl, `LOCK TABLE ${tables.join(', ')} IN ACCESS EXCLUSIVE MODE`, []);
  }

  static async #by(databaseUrl: string, lock: string, values: unknown[]): Promise<RowLock> {
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query('BEGIN');
    await client.query(lock, values);
    return new RowLock(client);
  }

  /** How many connections wait for it; of several that wait for one row, the first. */
  async waiters(): Promise<number> {
    await this.#client.query('SELECT pg_stat_clear_snapshot()'); // else a transaction sees no connection that came later
    const { rows } = await this.#client.query<{ count: number }>(WAITERS);
    return rows[0]?.count ?? 0;
  }

  async release(): Promise<void> {
    await this.#client.query('COMMIT');
    await this.#client.end();
  }
}
