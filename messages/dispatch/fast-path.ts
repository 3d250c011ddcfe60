import { errorMessage } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import { Loop } from '../../runtime/loop.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import {
  type AcceptRow,
  type CountLimits,
  type DispatchOffer,
  type NewMessage,
  runAcceptTransaction,
} from '../accept/accept-transaction.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { MessageRow } from '../read/rows.js';
import type { DispatchRunner } from '../runner/runner.js';
import { FairShare } from '../runner/running-dispatches.js';
import type { DispatchEnd, Dispatches, LiveMessage } from './dispatches.js';
import { dispatchedNow, dispatchedRow } from './open-dispatch.js';

/** Messages on the fast path in one process until their workflows take over, shared fairly; further ones take the workflow path. */
const IN_FLIGHT_MAX = 4_000;
/**
 * Nothing is sent later than this after the accept transaction began. The same time counts in the database, where a message whose
 * `wake_requested_at` is older is taken over by the sweeper.
 */
export const LEASE_MS = 10_000;

export interface FastPathOptions {
  core: MessageCore;
  dispatches: Dispatches;
  runner: DispatchRunner;
  /** Starts the workflow of a message; resolves when Temporal has acknowledged it. */
  supervise(ref: MessageRef & SessionRef): Promise<void>;
  /** Messages until their workflows take over; 4,000 by default. */
  inFlightMax?: number;
}

/** Ends after which the message's workflow continues it. */
const NEEDS_WORKFLOW: ReadonlySet<DispatchEnd['state']> = new Set(['input_required', 'not_sent', 'unrecorded']);

/** Measures by the monotonic clock and by the wall clock, because only the wall clock counts the time of a suspended machine. */
class Stopwatch {
  readonly #startedAtMs = performance.now();
  readonly #startedAtWallMs = Date.now();

  elapsedMs(): number {
    return Math.max(performance.now() - this.#startedAtMs, Date.now() - this.#startedAtWallMs);
  }
}

/**
 * The fast path (docs/durability.md): accept transaction, dispatch and complete transaction in the process that took the request. A message
 * that takes longer than two seconds or asks a human is handed over to its workflow.
 */
export class FastPath {
  readonly #options: FastPathOptions;
  readonly #handOver: HandOver;
  readonly #inFlight: FairShare;

  constructor(options: FastPathOptions) {
    this.#options = options;
    this.#inFlight = new FairShare(options.inFlightMax ?? IN_FLIGHT_MAX);
    this.#handOver = new HandOver(options);
  }

  /** Stops handing over. The sweeper takes over the remaining messages when their leases have run out. */
  stop(): Promise<void> {
    return this.#handOver.stop();
  }

  /**
   * Accepts a message and, where this process reaches the agent, sends its dispatch; undefined while it takes nothing new.
   * @throws as `runAcceptTransaction`
   */
  async send(
    draft: NewMessage,
    counting: CountLimits,
  ): Promise<{ row: AcceptRow; live: LiveMessage | null } | undefined> {
    const { core, runner } = this.#options;
    if (this.#inFlight.isUsedUp(draft.tenant_id)) return undefined;
    const offer = { dispatch_id: newId('dsp'), mesh_id: runner.meshId };
    const lease = new Stopwatch();
    if (!runner.reserve(offer.dispatch_id)) return undefined;
    const leave = this.#enter(draft.tenant_id);
    let live: LiveMessage | null = null;
    try {
      const { idempotencyHours } = core.limits;
      const row = await runAcceptTransaction(core.db, draft, { counting, offer, idempotencyHours });
      if (row.verdict !== 'dispatched') return { row, live: null };
      live = await this.#dispatch(draft, row, { offer, lease, leave });
      return { row, live };
    } finally {
      // If only the answer of a commit was lost, this node from here on reports that it never sent the dispatch.
      runner.releaseReservation(offer.dispatch_id);
      if (live) void live.ended.then(leave);
      else leave();
    }
  }

  /** Counts a message. @returns to be called when it ends here or its workflow takes over, whichever is first */
  #enter(tenantId: string): () => void {
    this.#inFlight.add(tenantId);
    let isIn = true;
    return () => {
      if (isIn) this.#inFlight.remove(tenantId);
      isIn = false;
    };
  }

  async #dispatch(
    draft: NewMessage,
    row: AcceptRow,
    { offer, lease, leave }: { offer: DispatchOffer; lease: Stopwatch; leave: () => void },
  ): Promise<LiveMessage | null> {
    const message = dispatchedRow(draft, row);
    // After the lease another process may have taken the message over.
    const isLeaseValid = () => lease.elapsedMs() < LEASE_MS;
    const { runner } = this.#options;
    const open = dispatchedNow(draft, row, offer);
    const ended = runner.send(open, isLeaseValid);
    if (!ended) {
      await runner.saturationKnown(open);
      await this.#release(message, offer.dispatch_id);
      return null;
    }
    this.#handOver.add(message, leave);
    return { row: message, dispatch_id: offer.dispatch_id, ended: ended.then((end) => this.#ended(message, end)) };
  }

  /** Nothing was sent: the workflow of the message routes it again. */
  async #release(message: MessageRow, dispatchId: string): Promise<void> {
    const { core, dispatches } = this.#options;
    const ref = { tenant_id: message.tenant_id, message_id: message.message_id, dispatch_id: dispatchId };
    await dispatches.release(ref, 'NOT_REACHED_HERE', { nothingSent: true }).catch((error: unknown) => {
      // The workflow asks this node, which reports that it never sent the dispatch.
      core.log.warn({ err: errorMessage(error), dispatch_id: dispatchId }, 'dispatch could not be released yet');
    });
    core.workflowStarter.message(message);
  }

  #ended(message: MessageRow, end: DispatchEnd): DispatchEnd {
    this.#handOver.remove(message);
    if (NEEDS_WORKFLOW.has(end.state)) this.#options.core.workflowStarter.message(message);
    return end;
  }
}

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
  onHandedOver(): void;
}

const RENEW = `
  UPDATE running_messages m SET wake_requested_at = now() FROM unnest($1::text[], $2::text[]) AS mine (tenant_id, message_id)
   WHERE m.tenant_id = mine.tenant_id AND m.message_id = mine.message_id AND m.lease_epoch = 0 AND m.wake_requested_at IS NOT NULL
     AND m.state = 'working'`;

/**
 * Starts the workflows of messages that last longer than `HANDOVER_MS`. While Temporal is away it keeps trying, and renews the leases of
 * messages that no workflow has taken over (docs/durability.md).
 */
class HandOver {
  readonly #options: FastPathOptions;
  /** By message id, in the order in which they are due. */
  readonly #pending = new Map<string, Pending>();
  readonly #loop: Loop;
  #failing = false;

  constructor(options: FastPathOptions) {
    this.#options = options;
    const { log } = options.core;
    this.#loop = new Loop({ name: 'hand-over', intervalMs: TICK_MS, work: () => this.#start(this.#due()), log });
    this.#loop.start();
  }

  /** @param onHandedOver called when Temporal has acknowledged the start of its workflow */
  add({ tenant_id, message_id, session_id }: MessageRef & SessionRef, onHandedOver: () => void): void {
    const dueMs = performance.now() + HANDOVER_MS;
    this.#pending.set(message_id, { ref: { tenant_id, message_id, session_id }, dueMs, failed: false, onHandedOver });
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
      const handedOver = results[index]?.status === 'fulfilled';
      if (handedOver) message.onHandedOver();
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
      await this.#options.core.db.system((tx) =>
        tx.query(RENEW, [refs.map((ref) => ref.tenant_id), refs.map((ref) => ref.message_id)]),
      );
    } catch (error) {
      this.#options.core.log.warn({ err: errorMessage(error) }, 'leases could not be renewed');
    }
  }
}
