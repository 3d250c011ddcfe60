import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { claimQueued, enqueuePushes, overdueQueued, type QueuedDelivery } from './queue.js';
import { purgeDeliveries } from './retention.js';

/** Between two looks for due deliveries while none is expected; another process may still have added one. */
const IDLE_MS = 1_000;
/** Between two looks while deliveries are expected. */
const ALERT_MS = 100;
/** For how long deliveries are expected after the last call of `expect` or the last one that was started. */
const ALERT_FOR_MS = 10_000;
/** Push notifications queued at once. */
const BATCH = 256;
const PURGE_EVERY_MS = 600_000;

/** The workflows of deliveries. */
export type DeliveryWorkflows = Pick<TemporalLink, 'wakeDelivery' | 'ensureDelivery' | 'ensureAlertDelivery'>;

/**
 * Starts the workflows of queued deliveries as slots are free for them (db/functions/claim_deliveries.sql). A queued delivery is started once and
 * never signalled again; what a crash of this process, or an outage of Temporal, left without a workflow is found after `check_at`.
 */
export class DeliveryStarter {
  #expectedUntil = 0;
  #purgedAt = performance.now();
  readonly #loop: Loop;

  constructor(
    private readonly db: Db,
    log: Logger,
    private readonly workflows: DeliveryWorkflows,
  ) {
    const loop = { name: 'delivery starter', intervalMs: IDLE_MS, immediate: true, log };
    this.#loop = new Loop({ ...loop, work: () => this.#turn() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends after the batch under way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Deliveries are expected soon: a config was set, or deliveries were written, in this process. */
  expect(): void {
    this.#expectedUntil = performance.now() + ALERT_FOR_MS;
    this.#loop.wake();
  }

  /** @returns milliseconds until the next look */
  async #turn(): Promise<number> {
    const due = await enqueuePushes(this.db, BATCH);
    const claimed = await claimQueued(this.db);
    const overdue = await overdueQueued(this.db);
    await this.#start([
      ...claimed.map((queued) => this.#startClaimed(queued)),
      ...overdue.map((queued) => this.#startOverdue(queued)),
    ]);
    await this.#purge();
    if (due + claimed.length > 0) this.#expectedUntil = performance.now() + ALERT_FOR_MS;
    if (due === BATCH) return 0;
    return performance.now() < this.#expectedUntil ? ALERT_MS : IDLE_MS;
  }

  async #start(starts: Promise<void>[]): Promise<void> {
    const failure = (await Promise.allSettled(starts)).find((one) => one.status === 'rejected');
    if (failure) throw failure.reason;
  }

  /** The workflow of a config may be about to end: the signal makes it look again. */
  #startClaimed(queued: QueuedDelivery): Promise<void> {
    if (queued.kind === 'push') return this.workflows.wakeDelivery(queued.input);
    return this.workflows.ensureAlertDelivery(queued.input, queued.starts);
  }

  #startOverdue(queued: QueuedDelivery): Promise<void> {
    if (queued.kind === 'push') return this.workflows.ensureDelivery(queued.input);
    return this.workflows.ensureAlertDelivery(queued.input, queued.starts);
  }

  async #purge(): Promise<void> {
    if (performance.now() - this.#purgedAt < PURGE_EVERY_MS) return;
    this.#purgedAt = performance.now();
    await purgeDeliveries(this.db);
  }
}
