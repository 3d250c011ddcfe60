import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageRef } from '../core.js';

/** A message that is not over this long after its dispatch gets its workflow, in milliseconds. */
const HANDOVER_MS = 2_000;
const TICK_MS = 100;
/** Starts under way at once. */
const STARTS_MAX = 64;
/** Between two tries while Temporal is away. */
const RETRY_MS = 2_000;

type Ref = MessageRef & SessionRef;

interface Waiting {
  ref: Ref;
  dueMs: number;
  /** A start was tried and not acknowledged. */
  failed: boolean;
}

const RENEW = `
  UPDATE running_messages m SET wake_requested_at = now() FROM unnest($1::text[], $2::text[]) AS mine (tenant_id, message_id)
   WHERE m.tenant_id = mine.tenant_id AND m.message_id = mine.message_id AND m.lease_epoch = 0 AND m.wake_requested_at IS NOT NULL
     AND m.state = 'working'`;

export interface HandOverOptions {
  db: Db;
  log: Logger;
  supervise(ref: Ref): Promise<void>;
}

/**
 * Hands messages that last over to their workflows: starts them `HANDOVER_MS` after the dispatch and, while Temporal is away, goes on
 * trying and renews the leases, unless somebody else has taken the message (architecture.md, decision 11).
 */
export class HandOver {
  readonly #options: HandOverOptions;
  /** By message; those that are due first come first. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #loop: Loop;
  #failing = false;

  constructor(options: HandOverOptions) {
    this.#options = options;
    const { log } = options;
    this.#loop = new Loop({ name: 'hand-over', intervalMs: TICK_MS, work: () => this.#start(this.#due()), log });
    this.#loop.start();
  }

  add(ref: Ref): void {
    const { tenant_id, message_id, session_id } = ref;
    this.#waiting.set(message_id, {
      ref: { tenant_id, message_id, session_id },
      dueMs: performance.now() + HANDOVER_MS,
      failed: false,
    });
  }

  remove(ref: MessageRef): void {
    this.#waiting.delete(ref.message_id);
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #due(): Waiting[] {
    const now = performance.now();
    const due: Waiting[] = [];
    for (const waiting of this.#waiting.values()) {
      if (waiting.dueMs > now || due.length === STARTS_MAX) break;
      due.push(waiting);
    }
    return due;
  }

  async #start(due: Waiting[]): Promise<void> {
    if (due.length === 0) return;
    const results = await Promise.allSettled(due.map(({ ref }) => this.#options.supervise(ref)));
    const failure = results.find((result) => result.status === 'rejected');
    due.forEach((waiting, index) => {
      const { message_id } = waiting.ref;
      // It may have ended meanwhile. Failed items are requeued last.
      if (!this.#waiting.delete(message_id) || results[index]?.status === 'fulfilled') return;
      this.#waiting.set(message_id, { ...waiting, dueMs: performance.now() + RETRY_MS, failed: true });
    });
    if (failure) {
      if (!this.#failing)
        this.#options.log.warn(
          { err: errorMessage(failure.reason) },
          'messages cannot be handed over yet; trying again',
        );
      await this.#renew();
    }
    this.#failing = failure !== undefined;
  }

  /** Renews the leases of all whose start is not acknowledged. */
  async #renew(): Promise<void> {
    const refs = [...this.#waiting.values()].filter(({ failed }) => failed).map(({ ref }) => ref);
    try {
      await this.#options.db.system((tx) =>
        tx.query(RENEW, [refs.map((ref) => ref.tenant_id), refs.map((ref) => ref.message_id)]),
      );
    } catch (error) {
      this.#options.log.warn({ err: errorMessage(error) }, 'leases could not be renewed');
    }
  }
}
