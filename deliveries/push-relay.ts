import { setTimeout as delay } from 'node:timers/promises';
import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { claimDue, purgeDeliveries } from './push-deliveries.js';

/** How the relay paces itself, in milliseconds. */
export interface RelayPace {
  /** Between two looks while nothing is expected: another process may have something to tell. */
  idleMs: number;
  /** Between two looks while something is expected. */
  alertMs: number;
  /** For how long something is expected after it was announced or seen. */
  alertForMs: number;
  /** What has not been told by then is called for again: longer than an attempt. */
  againMs: number;
}

const PACE: RelayPace = { idleMs: 1_000, alertMs: 100, alertForMs: 10_000, againMs: 20_000 };
/** Deliveries claimed at once, and workflows started at once. */
const BATCH = 64;
const PURGE_EVERY_MS = 600_000;
/** How long the log of deliveries is kept. */
const KEPT_DAYS = 7;
const PURGED_AT_ONCE = 5_000;

/**
 * Starts the workflows of push notifications that are due (architecture.md, decision 3). What was claimed and not told is due again later,
 * so that nothing is lost with a process, or with Temporal.
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

  /** Ends after the batch under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake.abort();
    await this.#loop;
  }

  /** Somebody wants to be told of something that is under way in this process. */
  expect(): void {
    this.#expectedUntil = performance.now() + this.#pace.alertForMs;
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const found = await this.#relay();
      if (found > 0) this.#expectedUntil = performance.now() + this.#pace.alertForMs;
      if (found < BATCH) await this.#rest();
    }
  }

  async #rest(): Promise<void> {
    const { alertMs, idleMs } = this.#pace;
    const alert = performance.now() < this.#expectedUntil;
    // Called for while it was looking: it is alert now.
    this.#wake = new AbortController();
    if (this.#stopped) return;
    await delay(alert ? alertMs : idleMs, undefined, { signal: this.#wake.signal }).catch(() => undefined);
  }

  /** @returns how many workflows were called for */
  async #relay(): Promise<number> {
    try {
      const due = await claimDue(this.db, BATCH, this.#pace.againMs);
      const started = await Promise.allSettled(due.map((ref) => this.temporal.wakeDelivery(ref)));
      const failure = started.find((one) => one.status === 'rejected');
      if (failure) throw failure.reason;
      await this.#purge();
      if (this.#failing) this.log.info('push notifications go out again');
      this.#failing = false;
      return due.length;
    } catch (error) {
      if (!this.#failing)
        this.log.warn({ err: errorMessage(error) }, 'push notifications cannot be started; it goes on trying');
      this.#failing = true;
      return 0;
    }
  }

  async #purge(): Promise<void> {
    if (performance.now() - this.#purgedAt < PURGE_EVERY_MS) return;
    this.#purgedAt = performance.now();
    await purgeDeliveries(this.db, KEPT_DAYS, PURGED_AT_ONCE);
  }
}
