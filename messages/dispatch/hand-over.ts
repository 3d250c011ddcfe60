import { errorMessage } from '../../runtime/errors.js';
import { Loop } from '../../runtime/loop.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageCore, MessageRef } from '../core.js';
import { renewLeases, stillRunning } from './leases.js';

const TICK_MS = 100;
/** Concurrent starts, and those of one tenant: few, so that thousands that are due at once do not take the processors from other tenants. */
const [STARTS_MAX, STARTS_OF_TENANT_MAX] = [64, 4];
/** The pause between two attempts while Temporal is away. */
const RETRY_MS = 2_000;

/** A message that no workflow has taken over yet. */
export interface PendingHandOver {
  ref: MessageRef & SessionRef;
  /** When its workflow is to start, by the monotonic clock. */
  dueMs: number;
  /** A start was attempted and not acknowledged. */
  failed: boolean;
  /** Called when Temporal has acknowledged the start of its workflow. */
  onHandedOver: (() => void) | undefined;
}

export interface HandOverOptions {
  core: Pick<MessageCore, 'db' | 'log'>;
  /** Starts the workflow of a message; resolves when Temporal has acknowledged it. */
  supervise(ref: MessageRef & SessionRef): Promise<void>;
}

/**
 * Starts the workflows of messages that last longer than `WATCH_AFTER_MS`. While Temporal is away it keeps trying, and renews the leases of
 * messages that no workflow has taken over (docs/durability.md).
 */
export class HandOver {
  readonly #pending: Map<string, PendingHandOver>;
  readonly #options: HandOverOptions;
  readonly #loop: Loop;
  #failing = false;

  /** @param pending by message id; a message that has ended is taken out by the caller */
  constructor(pending: Map<string, PendingHandOver>, options: HandOverOptions) {
    this.#pending = pending;
    this.#options = options;
    const { log } = options.core;
    this.#loop = new Loop({ name: 'hand-over', intervalMs: TICK_MS, work: () => this.#turn(), log });
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #due(): PendingHandOver[] {
    const now = performance.now();
    const due: PendingHandOver[] = [];
    const dueOf = new Map<string, number>();
    for (const message of this.#pending.values()) {
      if (due.length === STARTS_MAX) break;
      if (message.dueMs > now) continue;
      const ofTenant = (dueOf.get(message.ref.tenant_id) ?? 0) + 1;
      dueOf.set(message.ref.tenant_id, ofTenant);
      if (ofTenant <= STARTS_OF_TENANT_MAX) due.push(message);
    }
    return due;
  }

  /** Starts some that are due. @returns milliseconds until the next turn: none while there may be more */
  async #turn(): Promise<number> {
    const due = await this.#stillRunning(this.#due());
    if (due.length === 0) return TICK_MS;
    await this.#start(due);
    return this.#failing ? TICK_MS : 0;
  }

  /** Those that are not over, as far as that can be read. */
  async #stillRunning(due: PendingHandOver[]): Promise<PendingHandOver[]> {
    if (due.length === 0) return due;
    const running = await stillRunning(
      this.#options.core.db,
      due.map(({ ref }) => ref),
    ).catch(() => null);
    if (!running) return due; // the start is tried, and repeated
    for (const { ref, onHandedOver } of due) {
      if (running.has(ref.message_id) || !this.#pending.delete(ref.message_id)) continue;
      onHandedOver?.();
    }
    return due.filter(({ ref }) => running.has(ref.message_id));
  }

  async #start(due: PendingHandOver[]): Promise<void> {
    const results = await Promise.allSettled(due.map(({ ref }) => this.#options.supervise(ref)));
    const failure = results.find((result) => result.status === 'rejected');
    due.forEach((message, index) => {
      const { message_id } = message.ref;
      const handedOver = results[index]?.status === 'fulfilled';
      if (handedOver) message.onHandedOver?.();
      // It may have ended meanwhile. Failed items are requeued last.
      if (!this.#pending.delete(message_id) || handedOver) return;
      this.#pending.set(message_id, { ...message, dueMs: performance.now() + RETRY_MS, failed: true });
    });
    if (failure) {
      if (!this.#failing)
        this.#options.core.log.warn(
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
      await renewLeases(this.#options.core.db, refs);
    } catch (error) {
      this.#options.core.log.warn({ err: errorMessage(error) }, 'leases could not be renewed');
    }
  }
}
