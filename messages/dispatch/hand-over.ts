import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageRef } from '../core.js';

/** Milliseconds from the dispatch of a message to the start of its workflow. */
const HANDOVER_MS = 2_000;
const TICK_MS = 100;
/** Concurrent starts. */
const STARTS_MAX = 64;
/** The pause between two attempts while Temporal is away. */
const RETRY_MS = 2_000;

interface Pending {
  ref: MessageRef & SessionRef;
  dueMs: number;
  /** A start was attempted and not acknowledged. */
  failed: boolean;
}

const RENEW = `
  UPDATE running_messages m SET wake_requested_at = now() FROM unnest($1::text[], $2::text[]) AS mine (tenant_id, message_id)
   WHERE m.tenant_id = mine.tenant_id AND m.message_id = mine.message_id AND m.lease_epoch = 0 AND m.wake_requested_at IS NOT NULL
     AND m.state = 'working'`;

export interface HandOverOptions {
  db: Db;
  log: Logger;
  /** Starts the workflow of a message; resolves when Temporal has acknowledged it. */
  supervise(ref: MessageRef & SessionRef): Promise<void>;
}

/**
 * Starts the workflows of messages that last longer than `HANDOVER_MS`. While Temporal is away it keeps trying, and renews the leases of
 * messages that no workflow has taken over (docs/durability.md).
 */
export class HandOver {
  readonly #options: HandOverOptions;
  /** By message id, in the order in which they are due. */
  readonly #pending = new Map<string, Pending>();
  readonly #loop: Loop;
  #failing = false;

  constructor(options: HandOverOptions) {
    this.#options = options;
    const { log } = options;
    this.#loop = new Loop({ name: 'hand-over', intervalMs: TICK_MS, work: () => this.#start(this.#due()), log });
    this.#loop.start();
  }

  add({ tenant_id, message_id, session_id }: MessageRef & SessionRef): void {
    const dueMs = performance.now() + HANDOVER_MS;
    this.#pending.set(message_id, { ref: { tenant_id, message_id, session_id }, dueMs, failed: false });
  }

  remove(ref: MessageRef): void {
    this.#pending.delete(ref.message_id);
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #due(): Pending[] {
    const now = performance.now();
    const due: Pending[] = [];
    for (const message of this.#pending.values()) {
      if (message.dueMs > now || due.length === STARTS_MAX) break;
      due.push(message);
    }
    return due;
  }

  async #start(due: Pending[]): Promise<void> {
    if (due.length === 0) return;
    const results = await Promise.allSettled(due.map(({ ref }) => this.#options.supervise(ref)));
    const failure = results.find((result) => result.status === 'rejected');
    due.forEach((message, index) => {
      const { message_id } = message.ref;
      // It may have ended meanwhile. Failed items are requeued last.
      if (!this.#pending.delete(message_id) || results[index]?.status === 'fulfilled') return;
      this.#pending.set(message_id, { ...message, dueMs: performance.now() + RETRY_MS, failed: true });
    });
    if (failure) {
      if (!this.#failing)
        this.#options.log.warn(
          { err: errorMessage(failure.reason) },
          'messages cannot be handed over yet; trying again',
        );
      await this.#renewLeases();
    }
    this.#failing = failure !== undefined;
  }

  async #renewLeases(): Promise<void> {
    const refs = [...this.#pending.values()].filter(({ failed }) => failed).map(({ ref }) => ref);
    try {
      await this.#options.db.system((tx) =>
        tx.query(RENEW, [refs.map((ref) => ref.tenant_id), refs.map((ref) => ref.message_id)]),
      );
    } catch (error) {
      this.#options.log.warn({ err: errorMessage(error) }, 'leases could not be renewed');
    }
  }
}
