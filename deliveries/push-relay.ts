import { setTimeout as delay } from 'node:timers/promises';
import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { claimDue, purgeDeliveries } from './push-deliveries.js';

/** How often the relay looks for due deliveries, in milliseconds. */
export interface RelayPace {
  /** Between two looks while none is expected; another process may still have added one. */
  idleMs: number;
  /** Between two looks while deliveries are expected. */
  alertMs: number;
  /** For how long deliveries are expected after the last call of `expect` or the last due one. */
  alertForMs: number;
  /** After how long a claimed delivery that has not ended is due again; longer than an attempt. */
  againMs: number;
}

const PACE: RelayPace = { idleMs: 1_000, alertMs: 100, alertForMs: 10_000, againMs: 20_000 };
/** Deliveries claimed at once, and workflows started at once. */
const BATCH = 64;
const PURGE_EVERY_MS = 600_000;
/** The retention of ended deliveries. */
const RETENTION_DAYS = 7;
const PURGE_BATCH = 5_000;

/**
 * Starts the workflows of due push notifications. A claimed delivery that has not ended becomes due again, so a crash of a process or an
 * outage of Temporal loses none.
 */
export class PushRelay {
  readonly #pace: RelayPace;
  #expectedUntil = 0;
  #purgedAt = performance.now();
  #wake = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #stopped = false;
  #failing = false;

  constructor(
    private readonly db: Db,
    private readonly log: Logger,
    private readonly temporal: Pick<TemporalLink, 'wakeDelivery'>,
    pace: Partial<RelayPace> = {},
  ) {
    this.#pace = { ...PACE, ...pace };
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Stops after the current batch. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake.abort();
    await this.#loop;
  }

  /** A config was set in this process: deliveries are expected soon. */
  expect(): void {
    this.#expectedUntil = performance.now() + this.#pace.alertForMs;
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const found = await this.#relay();
      if (found > 0) this.#expectedUntil = performance.now() + this.#pace.alertForMs;
      if (found < BATCH) await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    const { alertMs, idleMs } = this.#pace;
    const alert = performance.now() < this.#expectedUntil;
    // A call of `expect` during the last look is already in `alert`.
    this.#wake = new AbortController();
    if (this.#stopped) return;
    await delay(alert ? alertMs : idleMs, undefined, { signal: this.#wake.signal }).catch(() => undefined);
  }

  /** @returns how many workflows it started or woke */
  async #relay(): Promise<number> {
    try {
      const due = await claimDue(this.db, BATCH, this.#pace.againMs);
      const started = await Promise.allSettled(due.map((ref) => this.temporal.wakeDelivery(ref)));
      const failure = started.find((one) => one.status === 'rejected');
      if (failure) throw failure.reason;
      await this.#purge();
      if (this.#failing) this.log.info('push notifications can be started again');
      this.#failing = false;
      return due.length;
    } catch (error) {
      if (!this.#failing) this.log.warn({ err: errorMessage(error) }, 'push notifications cannot be started; retrying');
      this.#failing = true;
      return 0;
    }
  }

  async #purge(): Promise<void> {
    if (performance.now() - this.#purgedAt < PURGE_EVERY_MS) return;
    this.#purgedAt = performance.now();
    await purgeDeliveries(this.db, RETENTION_DAYS, PURGE_BATCH);
  }
}
