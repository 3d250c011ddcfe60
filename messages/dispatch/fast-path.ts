import { SendMetadata } from '../../contracts/a2a/a2a.js';
import { newId } from '../../runtime/ids.js';
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
import { FairShare } from '../runner/running-dispatches.js';
import type { DispatchEnd, Dispatches, LiveMessage, OpenDispatch } from './dispatches.js';
import { type DispatchForwarder, type ForwardedDispatches, forwardDispatch, releaseUnsent } from './forwarding.js';
import { HandOver, type HandOverOptions, type PendingHandOver } from './hand-over.js';
import { IdleAgents } from './idle-agents.js';
import { dispatchedNow, dispatchedRow } from './open-dispatch.js';
import { createQueues } from './queues.js';
import { Taker } from './taker.js';

/** Messages on the fast path in one process until their workflows take over, shared fairly; further ones take the workflow path. */
const IN_FLIGHT_MAX = 4_000;
/** Idle agents that are offered for a message: of several messages at once each gets others. */
const IDLE_OFFERED = 2;

export interface FastPathOptions extends HandOverOptions {
  core: MessageCore;
  dispatches: Dispatches;
  /** Null in a process without the mesh role. */
  runner: DispatchRunner | null;
  /** Null in a process that knows no other. */
  forwarder: DispatchForwarder | null;
  /** Messages until their workflows take over; 4,000 by default. */
  inFlightMax?: number;
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
 * the node that holds the agent's socket. A message that takes longer than `WATCH_AFTER_MS` or asks a human is handed over to its workflow.
 */
export class FastPath implements ForwardedDispatches {
  readonly #options: FastPathOptions;
  /** Messages without a workflow, by message id. */
  readonly #pending = new Map<string, PendingHandOver>();
  readonly #handOver: HandOver;
  readonly #inFlight: FairShare;
  readonly #idle = new IdleAgents();
  /** Null without the mesh role. */
  readonly taker: Taker | null;

  constructor(options: FastPathOptions) {
    this.#options = options;
    this.#inFlight = new FairShare(options.inFlightMax ?? IN_FLIGHT_MAX);
    this.#handOver = new HandOver(this.#pending, options);
    const { core, runner } = options;
    const run = (open: OpenDispatch) => void this.#run(open);
    this.taker = runner && new Taker({ core, queues: createQueues(core), idle: this.#idle, runner, run });
  }

  /** Stops handing over. The sweeper takes over the remaining messages when their leases have run out. */
  async stop(): Promise<void> {
    await this.taker?.stop();
    await this.#handOver.stop();
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
    if (this.#inFlight.isUsedUp(draft.tenant_id)) return undefined;
    const offer = this.#offer(draft);
    const lease = new Stopwatch();
    if (!offer || runner?.reserve(offer.dispatch_id) === false) return undefined;
    const leave = this.#inFlight.enter(draft.tenant_id);
    let live: LiveMessage | null = null;
    try {
      const { idempotencyHours } = core.limits;
      const row = await runAcceptTransaction(core.db, draft, { counting, offer, idempotencyHours });
      if (row.verdict === 'queued') this.#queued(draft, row);
      if (row.verdict !== 'dispatched') return { row, live: null };
      live = await this.#dispatch(draft, row, { dispatch_id: offer.dispatch_id, lease, leave });
      return { row, live };
    } finally {
      // If only the answer of a commit was lost, this node from here on reports that it never sent the dispatch.
      runner?.releaseReservation(offer.dispatch_id);
      if (live) void live.ended.then(leave);
      else leave();
    }
  }

  /** It waits for an agent: nodes take it. Where that lasts, it gets its workflow; where policies look at its dispatch, it does at once. */
  #queued(draft: NewMessage, { message_id, session_id, queue }: AcceptRow): void {
    const { core } = this.#options;
    const { tenant_id } = draft;
    const ref = { tenant_id, message_id, session_id };
    if (core.policies.concerns(tenant_id, 'dispatch')) {
      core.workflowStarter.message(ref, { fresh: true });
      return;
    }
    this.#superviseLater(ref, this.#waitsMs(draft));
    if (queue !== null) this.taker?.look({ tenant_id, queue });
  }

  /** Sends what was taken from a queue. Never rejects. */
  async #run(open: OpenDispatch): Promise<void> {
    const ended = this.#sendHere(open, new Stopwatch());
    if (ended === null) await releaseUnsent(this.#options, open);
  }

  take(open: OpenDispatch, elapsedMs: number): Promise<DispatchEnd> | null {
    return this.#sendHere(open, new Stopwatch(elapsedMs));
  }

  async refusalKnown(open: OpenDispatch): Promise<void> {
    await this.#options.runner?.saturationKnown(open);
  }

  /** What the accept transaction may open; undefined where nothing could be sent. */
  #offer({ tenant_id, want_agent_type }: NewMessage): DispatchOffer | undefined {
    const { runner, forwarder } = this.#options;
    const any_mesh = forwarder?.isReachable ?? false;
    const mesh_id = runner ? runner.meshId : any_mesh && forwarder?.hostedNode();
    if (!mesh_id) return undefined;
    const idle_ids = want_agent_type === null ? [] : this.#idle.some(tenant_id, want_agent_type, IDLE_OFFERED);
    return { dispatch_id: newId('dsp'), mesh_id, any_mesh, ...(idle_ids.length > 0 && { idle_ids }) };
  }

  async #dispatch(
    draft: NewMessage,
    row: AcceptRow,
    { dispatch_id, lease, leave }: { dispatch_id: string; lease: Stopwatch; leave: () => void },
  ): Promise<LiveMessage | null> {
    const { runner, forwarder } = this.#options;
    const message = dispatchedRow(draft, row);
    const open = dispatchedNow(draft, row, dispatch_id);
    if (row.mesh_id !== runner?.meshId && forwarder) {
      const ended = forwardDispatch(this.#options, forwarder, { ...open, mesh_id: row.mesh_id }, lease.elapsedMs());
      return { row: message, dispatch_id, ended };
    }
    const ended = this.#sendHere(open, lease, leave);
    if (ended !== null) return { row: message, dispatch_id, ended };
    await this.refusalKnown(open);
    await releaseUnsent(this.#options, open);
    return null;
  }

  /** @param onHandedOver called when its workflow takes over */
  #sendHere(open: OpenDispatch, lease: Stopwatch, onHandedOver?: () => void): Promise<DispatchEnd> | null {
    const { leaseMs } = this.#options.core.clocks;
    // The lease counts from the begin of the accept transaction, in the database too: after it a sweeper may have taken the message over.
    const ended = this.#options.runner?.send(open, () => lease.elapsedMs() < leaseMs);
    if (!ended) return null;
    this.#idle.remove(open);
    this.#superviseLater(open, this.#options.core.limits.watchAfterMs, onHandedOver);
    return ended.then((end) => this.#ended(open, end));
  }

  /** How long a queued message is nobody's but its node's: its workflow ends its wait. */
  #waitsMs({ deadline_ms, metadata }: NewMessage): number {
    const { watchAfterMs, queueWaitMs } = this.#options.core.limits;
    const { queue_wait_ms = deadline_ms } = SendMetadata.parse(metadata);
    return Math.min(watchAfterMs, queueWaitMs, queue_wait_ms);
  }

  #superviseLater(
    { tenant_id, message_id, session_id }: MessageRef & SessionRef,
    afterMs: number,
    onHandedOver?: () => void,
  ): void {
    const dueMs = performance.now() + afterMs;
    this.#pending.set(message_id, { ref: { tenant_id, message_id, session_id }, dueMs, failed: false, onHandedOver });
  }

  #ended(open: OpenDispatch, end: DispatchEnd): DispatchEnd {
    this.#pending.delete(open.message_id);
    if (NEEDS_WORKFLOW.has(end.state)) this.#options.core.workflowStarter.message(open);
    return end;
  }
}
