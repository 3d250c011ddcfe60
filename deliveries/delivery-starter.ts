import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { allOrFirstFailure } from '../runtime/promises/all-or-first-failure.js';
import { PushChanges } from './push/push-changes.js';
import { claimQueued, overdueQueued } from './queue.js';
import { purgeDeliveries } from './retention.js';

/** Between two looks for due deliveries while none is expected; another process may still have added one. */
const IDLE_MS = 1_000;
/** Between two looks while deliveries are expected. */
const EXPECTING_MS = 100;
/** For how long deliveries are expected after the last call of `expect` or the last one that was started. */
const EXPECTED_FOR_MS = 10_000;
const PURGE_EVERY_MS = 600_000;

/** The workflows of deliveries. */
export type DeliveryWorkflows = Pick<TemporalLink, 'ensureDelivery'>;

/**
 * Starts the workflows of queued deliveries as slots are free for them (db/functions/claim_deliveries.sql). A queued delivery is started once and
 * never signalled again; what a crash of this process, or an outage of Temporal, left without a workflow is found after `check_at`. Beside it,
 * a loop deletes what is old.
 */
export class DeliveryStarter {
  #expectedUntil = 0;
  #isStopping = false;
  readonly #changes: PushChanges;
  readonly #loop: Loop;
  readonly #purge: Loop;

  constructor(
    private readonly db: Db,
    log: Logger,
    private readonly workflows: DeliveryWorkflows,
  ) {
    const loop = { name: 'delivery starter', intervalMs: IDLE_MS, immediate: true, log };
    this.#changes = new PushChanges(db);
    this.#loop = new Loop({ ...loop, work: () => this.#turn() });
    const retention = { name: 'retention of deliveries', intervalMs: PURGE_EVERY_MS, log };
    this.#purge = new Loop({ ...retention, work: () => purgeDeliveries(db, () => this.#isStopping) });
  }

  start(): void {
    this.#isStopping = false;
    this.#loop.start();
    this.#purge.start();
  }

  /** Ends after the batches under way. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([this.#loop.stop(), this.#purge.stop()]);
  }

  /** Deliveries are expected soon: a config was set, or deliveries were written, in this process. */
  expect(): void {
    this.#expectedUntil = performance.now() + EXPECTED_FOR_MS;
    this.#loop.wake();
  }

  /** @returns milliseconds until the next look */
  async #turn(): Promise<number> {
    const hasChanges = await this.#changes.relay();
    const claimed = await claimQueued(this.db);
    const overdue = await overdueQueued(this.db);
    await allOrFirstFailure(
      [...claimed, ...overdue].map(({ input, starts }) => this.workflows.ensureDelivery(input, starts)),
    );
    if (hasChanges || claimed.length > 0) this.#expectedUntil = performance.now() + EXPECTED_FOR_MS;
    if (hasChanges) return 0;
    return performance.now() < this.#expectedUntil ? EXPECTING_MS : IDLE_MS;
  }
}
