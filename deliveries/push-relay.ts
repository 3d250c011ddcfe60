import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { claimDue, purgeDeliveries } from './push-deliveries.js';

/** Between two looks for due deliveries while none is expected; another process may still have added one. */
const IDLE_MS = 1_000;
/** Between two looks while deliveries are expected. */
const ALERT_MS = 100;
/** For how long deliveries are expected after the last call of `expect` or the last due one. */
const ALERT_FOR_MS = 10_000;
/** After how long a claimed delivery that has not ended is due again; longer than an attempt. */
const AGAIN_MS = 20_000;
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
  #expectedUntil = 0;
  #purgedAt = performance.now();
  readonly #loop: Loop;

  constructor(
    private readonly db: Db,
    log: Logger,
    private readonly temporal: Pick<TemporalLink, 'wakeDelivery'>,
  ) {
    const loop = { name: 'push relay', intervalMs: IDLE_MS, immediate: true, log };
    this.#loop = new Loop({ ...loop, work: () => this.#relay() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends after the batch under way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** A config was set in this process: deliveries are expected soon. */
  expect(): void {
    this.#expectedUntil = performance.now() + ALERT_FOR_MS;
    this.#loop.wake();
  }

  /** @returns milliseconds until the next look */
  async #relay(): Promise<number> {
    const due = await claimDue(this.db, BATCH, AGAIN_MS);
    const started = await Promise.allSettled(due.map((ref) => this.temporal.wakeDelivery(ref)));
    const failure = started.find((one) => one.status === 'rejected');
    if (failure) throw failure.reason;
    await this.#purge();
    if (due.length > 0) this.#expectedUntil = performance.now() + ALERT_FOR_MS;
    if (due.length === BATCH) return 0;
    return performance.now() < this.#expectedUntil ? ALERT_MS : IDLE_MS;
  }

  async #purge(): Promise<void> {
    if (performance.now() - this.#purgedAt < PURGE_EVERY_MS) return;
    this.#purgedAt = performance.now();
    await purgeDeliveries(this.db, RETENTION_DAYS, PURGE_BATCH);
  }
}
