import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { isLockTimeout } from './errors.js';
import { FUNCTION_SCHEMA } from './migrate.js';
import type { Db } from './pool.js';

const EVERY_MS = 600_000;
/** The pause after a turn that found a transaction which still used a partition. */
const RETRY_MS = 30_000;
/** How long a turn waits for such a transaction to end. Nobody waits for the turn meanwhile. */
const LOCK_WAIT_MS = 5_000;
/** How long a statement may take without a word; after that the connection is taken for one that a fail-over left hanging. */
const ANSWER_MS = 300_000;
/** The key of the advisory lock of all processes that drop partitions. */
const LOCK = 7_301_846_226;
/** The comment on a partition that retention detaches. It drops no other table: an operator may keep a detached partition as an archive. */
const MARK = 'detached by retention, to be dropped';
/** How far the clock of a process, which makes ids, may be behind the database's. */
const CLOCK_SLACK_MS = 86_400_000;
/** Rows that one transaction looks at to delete what belongs to dropped messages. */
const BATCH = 2_000;

/** How retention works. */
export interface RetentionOptions {
  /** The login of the migrations, which owns the tables. */
  url: string;
  db: Db;
  log: Pick<Logger, 'info' | 'warn'>;
  /** For how many days messages with all that belongs to them, and events, are kept; undefined: for ever. */
  days: { messages: number | undefined; events: number | undefined };
  /** Adds the dispatches of all agents before a time to their totals, before these dispatches are dropped. */
  settleTotals: (before: Date) => Promise<void>;
  /** Adds up the usage of everything that was committed before. @throws where it cannot: then nothing is dropped */
  rollUpUsage: () => Promise<unknown>;
  /** After how long a statement that says nothing is given up; five minutes by default. */
  answerMs?: number;
}

interface Partition {
  table: string;
  name: string;
}

const PAST = `
  SELECT name, ends_at FROM partitions_of($1) WHERE ends_at <= now() - $2 * interval '1 day' ORDER BY name`;

/** Partitions that retention has marked, with how far their detachment came: `attached` where it has not begun. */
const MARKED = `
  SELECT c.relname AS name, CASE WHEN i.inhrelid IS NULL THEN 'detached' WHEN i.inhdetachpending THEN 'pending' ELSE 'attached' END AS state
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND obj_description(c.oid, 'pg_class') = $1 ORDER BY c.relname`;

/**
 * Drops the partitions whose whole month is older than the retention, and what belongs to the messages in them, without locking writers: a
 * partition is detached CONCURRENTLY, which needs a connection of its own and waits for transactions that may still read it. Several
 * processes may run it; one at a time works. A turn finishes what an earlier one or a process that died left half-done.
 */
export class Retention {
  readonly #loop: Loop;
  #client: pg.Client | undefined;
  #stopped = false;

  constructor(private readonly options: RetentionOptions) {
    const loop = { name: 'retention', intervalMs: EVERY_MS, immediate: true, log: options.log };
    this.#loop = new Loop({ ...loop, work: () => this.turn() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Cuts the turn under way off; the next start finishes it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#client?.end();
    await this.#loop.stop();
  }

  /** Drops what is due. @returns milliseconds until the next turn */
  async turn(): Promise<number> {
    const client = new pg.Client({
      connectionString: this.options.url,
      connectionTimeoutMillis: 5_000,
      query_timeout: this.options.answerMs ?? ANSWER_MS,
      keepAlive: true,
      application_name: 'fleet_retention',
      options: `-c search_path=${FUNCTION_SCHEMA},public -c timezone=UTC -c statement_timeout=0 -c lock_timeout=${LOCK_WAIT_MS}`,
    });
    client.on('error', (error) => this.options.log.warn({ err: error.message }, 'database connection lost'));
    this.#client = client;
    try {
      await client.connect();
      const lock = await client.query('SELECT pg_try_advisory_lock($1) AS taken', [LOCK]);
      if (lock.rows[0].taken) await this.#dropDue(client);
      return EVERY_MS;
    } catch (error) {
      if (this.#stopped) return EVERY_MS;
      if (!isLockTimeout(error)) throw error;
      this.options.log.info({}, 'a partition is not dropped yet: a transaction may still use it');
      return RETRY_MS;
    } finally {
      this.#client = undefined;
      await client.end();
    }
  }

  async #dropDue(client: pg.Client): Promise<void> {
    const { messages, events } = this.options.days;
    await this.#finishDetached(client);
    for (const [table, days] of [
      ['dispatches', messages],
      ['messages', messages],
      ['event_groups', events],
      // After their groups: one without a position has not been read.
      ['event_positions', events],
    ] as const) {
      if (days === undefined) continue;
      const past = await client.query<{ name: string; ends_at: Date }>(PAST, [table, days]);
      const newest = past.rows.at(-1);
      if (newest && table === 'dispatches') {
        await this.options.settleTotals(new Date(newest.ends_at.getTime() + CLOCK_SLACK_MS));
      }
      for (const { name } of past.rows) await this.#dropIfDisposable(client, { table, name });
    }
  }

  /** Drops what an earlier turn, or a process that died, detached. What it only marked loses the mark: an operator may detach it as an archive. */
  async #finishDetached(client: pg.Client): Promise<void> {
    await this.#unmarkAttached(client);
    for (const { name, state } of await this.#marked(client)) {
      const partition = { name, table: name.slice(0, -'_YYYY_MM'.length) };
      if (state === 'pending')
        await client.query(`ALTER TABLE public.${partition.table} DETACH PARTITION public.${name} FINALIZE`);
      await this.#drop(client, partition);
    }
  }

  async #marked(client: pg.Client): Promise<{ name: string; state: 'attached' | 'pending' | 'detached' }[]> {
    return (await client.query(MARKED, [MARK])).rows;
  }

  /** Takes the mark from partitions whose detachment has not begun. */
  async #unmarkAttached(client: pg.Client): Promise<void> {
    for (const { name, state } of await this.#marked(client))
      if (state === 'attached') await client.query(`COMMENT ON TABLE public.${name} IS NULL`);
  }

  /**
   * Detaches a partition. It is marked before, so that a process that dies in between leaves no table that nobody knows of. If its lock cannot
   * be had, the mark is removed again.
   */
  async #detach(client: pg.Client, { table, name }: Partition): Promise<void> {
    await client.query(`COMMENT ON TABLE public.${name} IS ${pg.escapeLiteral(MARK)}`);
    try {
      await client.query(`ALTER TABLE public.${table} DETACH PARTITION public.${name} CONCURRENTLY`);
    } catch (error) {
      if (isLockTimeout(error)) await this.#unmarkAttached(client);
      throw error;
    }
  }

  async #dropIfDisposable(client: pg.Client, partition: Partition): Promise<void> {
    const { table, name } = partition;
    const [row] = await this.options.db.system((tx) =>
      tx.query<{ disposable: boolean }>('SELECT partition_is_disposable($1, $2) AS disposable', [table, name]),
    );
    if (!row?.disposable) {
      this.options.log.info({ partition: name }, 'a partition is kept: something in it is not over');
      return;
    }
    // A disposable partition stays so: all its messages have ended, and from here on the sums of usage have them.
    await this.options.rollUpUsage();
    await this.#detach(client, partition);
    await this.#drop(client, partition);
  }

  /** Drops a detached partition, last: while it is there, a later turn knows that something is left to delete. */
  async #drop(client: pg.Client, { table, name }: Partition): Promise<void> {
    if (table === 'messages') {
      await client.query(`GRANT SELECT ON public.${name} TO fleet_system`);
      await this.#purge('SELECT * FROM purge_messages($3::regclass, $1, $2, $4)', [`public.${name}`, BATCH]);
      const { messages: days } = this.options.days;
      const ended = "now() - $3 * interval '1 day'";
      for (const purge of days === undefined ? [] : ['purge_plans', 'purge_sessions'])
        await this.#purge(`SELECT * FROM ${purge}(${ended}, $1, $2, $4)`, [days, BATCH]);
    }
    if (table === 'event_groups')
      await this.#purge('SELECT * FROM purge_deliveries($3, $1, $2, $4)', [name.slice(-'YYYY_MM'.length), BATCH]);
    await client.query(`DROP TABLE public.${name}`);
    this.options.log.info({ partition: name }, 'a partition was dropped');
  }

  /** Repeats a statement that takes one batch after a key, $1 and $2, until it gives none. Each is followed by a pause of its own length. */
  async #purge(statement: string, values: unknown[]): Promise<void> {
    for (let after: unknown[] | undefined = ['', '']; after; ) {
      if (this.#stopped) throw new Error('retention was stopped');
      const key: unknown[] = after;
      const startedAt = performance.now();
      const rows = await this.options.db.system((tx) => tx.query(statement, [...key, ...values]));
      after = rows[0] && Object.values(rows[0]);
      await delay(performance.now() - startedAt);
    }
  }
}
