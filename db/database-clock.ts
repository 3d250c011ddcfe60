import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { Db } from './pool.js';

const EVERY_MS = 2_000;
const READ = 'SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now';

/** A reading of the database's clock, and when it was asked for and answered by this process's clocks. */
interface Sample {
  databaseMs: number;
  askedAtMs: number;
  askedAtWallMs: number;
  answeredAtMs: number;
}

/**
 * The database's clock, read every two seconds, as the time that all processes share: their own monotonic clocks have nothing in common. It is
 * known to within the round trip of the last reading, so it gives two times, of which the right one is in between.
 */
export class DatabaseClock {
  readonly #db: Pick<Db, 'system'>;
  readonly #loop: Loop;
  #sample: Sample | undefined;

  constructor(db: Pick<Db, 'system'>, log: Logger) {
    this.#db = db;
    const work = (): Promise<void> => this.#read();
    this.#loop = new Loop({ name: 'database clock', intervalMs: EVERY_MS, immediate: true, work, log });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** The earliest that it can be by now, in milliseconds since 1970; null before the first reading. */
  earliestMs(): number | null {
    const { databaseMs, answeredAtMs } = this.#sample ?? { databaseMs: null, answeredAtMs: 0 };
    return databaseMs === null ? null : databaseMs + performance.now() - answeredAtMs;
  }

  /** The latest that it can be by now, in milliseconds since 1970, also after the machine was suspended; null before the first reading. */
  latestMs(): number | null {
    if (!this.#sample) return null;
    const { databaseMs, askedAtMs, askedAtWallMs } = this.#sample;
    return databaseMs + Math.max(performance.now() - askedAtMs, Date.now() - askedAtWallMs);
  }

  async #read(): Promise<void> {
    const [askedAtMs, askedAtWallMs] = [performance.now(), Date.now()];
    const [row] = await this.#db.system((tx) => tx.query<{ now: number }>(READ, [], 'read_clock'));
    if (row) this.#sample = { databaseMs: row.now, askedAtMs, askedAtWallMs, answeredAtMs: performance.now() };
  }
}
