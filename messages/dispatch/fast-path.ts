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
import type { DispatchRunner } from '../runner/runner.js';
import type { DispatchEnd, Dispatches, LiveMessage, OpenDispatch } from './dispatches.js';
import { type DispatchForwarder, type ForwardedDispatches, forwardDispatch, releaseUnsent } from './forwarding.js';
import { dispatchedNow, dispatchedRow } from './open-dispatch.js';

/** Messages on the fast path in one process; further ones take the workflow path. */
const IN_FLIGHT_MAX = 2_000;
/**
 * Nothing is sent later than this after the accept transaction began. The same time counts in the database, where a message whose
 * `wake_requested_at` is older is taken over by the sweeper.
 */
export const LEASE_MS = 10_000;

export interface FastPathOptions {
  core: MessageCore;
  dispatches: Dispatches;
  /** Null in a process without the mesh role. */
  runner: DispatchRunner | null;
  /** Null in a process that knows no other. */
  forwarder: DispatchForwarder | null;
  /** Starts the workflow of a message; resolves when Temporal has acknowledged it. */
  supervise(ref: MessageRef & SessionRef): Promise<void>;
}

/** Ends after which the message's workflow continues it. */
const NEEDS_WORKFLOW: ReadonlySet<DispatchEnd['state']> = new Set(['input_required', 'not_sent', 'unrecorded']);

/** Measures by the monotonic clock and by the wall clock, because only the wall clock counts the time of a suspended machine. */
class Stopwatch {
  readonly #startedAtMs: number;
  readonly #startedAtWallMs: number;

  /** @param elapsedMs what had passed elsewhere before */
  constructor(elapsedMs = 0) {
    this.#startedAtMs = performance.now() - elapsedMs;
    this.#startedAtWallMs = Date.now() - elapsedMs;
  }

  elapsedMs(): number {
    return Math.max(performance.now() - this.#startedAtMs, Date.now() - this.#startedAtWallMs);
  }
}

/**
 * The fast path (docs/durability.md): accept transaction in the process that took the request, dispatch and complete transaction there or on
 * the node that holds the agent's socket. A message that takes longer than two seconds or asks a human is handed over to its workflow.
 */
export class FastPath implements ForwardedDispatches {
  readonly #options: FastPathOptions;
  readonly #handOver: HandOver;
  #inFlight = 0;

  constructor(options: FastPathOptions) {
    this.#options = options;
    this.#handOver = new HandOver(options);
  }

  /** Stops handing over. The sweeper takes over the remaining messages when their leases have run out. */
  stop(): Promise<void> {
    return this.#handOver.stop();
  }

  /**
   * Accepts a message and, where this process or a node that it reaches has the agent, has its dispatch sent; undefined while it takes
   * nothing new.
   * @throws as `runAcceptTransaction`
   */
  async send(
    draft: NewMessage,
    counting: CountLimits,
  ): Promise<{ row: AcceptRow; live: LiveMessage | null } | undefined> {
    const { core, runner } = this.#options;
    if (this.#inFlight >= IN_FLIGHT_MAX) return undefined;
    const offer = this.#offer();
    const lease = new Stopwatch();
    if (!offer || runner?.reserve(offer.dispatch_id) === false) return undefined;
    this.#inFlight += 1;
    let running: Promise<unknown> | undefined;
    try {
      const { idempotencyHours } = core.limits;
      const row = await runAcceptTransaction(core.db, draft, { counting, offer, idempotencyHours });
      if (row.verdict !== 'dispatched') return { row, live: null };
      const live = await this.#dispatch(draft, row, offer.dispatch_id, lease);
      running = live?.ended;
      return { row, live };
    } finally {
      // If only the answer of a commit was lost, this node from here on reports that it never sent the dispatch.
      runner?.releaseReservation(offer.dispatch_id);
      const done = (): void => {
        this.#inFlight -= 1;
      };
      if (running) void running.then(done);
      else done();
    }
  }

  take(open: OpenDispatch, elapsedMs: number): Promise<DispatchEnd> | null {
    return this.#sendHere(open, new Stopwatch(elapsedMs));
  }

  /** What the accept transaction may open; undefined where nothing could be sent. */
  #offer(): DispatchOffer | undefined {
    const { runner, forwarder } = this.#options;
    const any_mesh = forwarder?.isReachable ?? false;
    const mesh_id = runner ? runner.meshId : any_mesh && forwarder?.hostedNode();
    return mesh_id ? { dispatch_id: newId('dsp'), mesh_id, any_mesh } : undefined;
  }

  async #dispatch(
    draft: NewMessage,
    row: AcceptRow,
    dispatch_id: string,
    lease: Stopwatch,
  ): Promise<LiveMessage | null> {
    const { runner, forwarder } = this.#options;
    const message = dispatchedRow(draft, row);
    const open = dispatchedNow(draft, row, dispatch_id);
    if (row.mesh_id !== runner?.meshId && forwarder) {
      const ended = forwardDispatch(this.#options, forwarder, { ...open, mesh_id: row.mesh_id }, lease.elapsedMs());
      return { row: message, dispatch_id, ended };
    }
    const ended = this.#sendHere(open, lease);
    if (ended !== null) return { row: message, dispatch_id, ended };
    await releaseUnsent(this.#options, open);
    return null;
  }

  #sendHere(open: OpenDispatch, lease: Stopwatch): Promise<DispatchEnd> | null {
    // After the lease another process may have taken the message over.
    const ended = this.#options.runner?.send(open, () => lease.elapsedMs() < LEASE_MS);
    if (!ended) return null;
    this.#handOver.add(open);
    return ended.then((end) => this.#ended(open, end));
  }

  #ended(open: OpenDispatch, end: DispatchEnd): DispatchEnd {
    this.#handOver.remove(open);
    if (NEEDS_WORKFLOW.has(end.state)) this.#options.core.workflowStarter.message(open);
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
