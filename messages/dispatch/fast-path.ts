import { errorMessage } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import {
  type AcceptRow,
  acceptInOne,
  type CountLimits,
  type NewMessage,
  type Offer,
} from '../accept/accept-transaction.js';
import { dispatchedDetails, dispatchedRow } from '../accept/draft.js';
import type { MessageCore } from '../core.js';
import type { MessageRow } from '../read/rows.js';
import type { DispatchRunner } from '../runner/runner.js';
import { openDispatchFrom } from './dispatch-payload.js';
import type { DispatchEnd, Dispatches } from './dispatches.js';
import { HandOver } from './hand-over.js';
import { LEASE_MS, Stopwatch } from './lease.js';

/** Messages that one process has on the fast path at once; further ones take the workflow path. */
const IN_FLIGHT_MAX = 2_000;

/** A message that takes the fast path in this process. */
export interface LiveMessage {
  /** Its row as the accept transaction wrote it. */
  row: MessageRow;
  dispatch_id: string;
  /** How its dispatch ended. Where `message` is null, the row in the database says how the message stands. Never rejects. */
  ended: Promise<DispatchEnd>;
}

export interface FastPathOptions {
  core: MessageCore;
  dispatches: Dispatches;
  runner: DispatchRunner;
  /** Starts or wakes the workflow of a message; resolves when Temporal has acknowledged it. */
  supervise(ref: { tenant_id: string; message_id: string; session_id: string }): Promise<void>;
}

/** Ends after which the message's workflow continues it. */
const NEEDS_WORKFLOW: ReadonlySet<DispatchEnd['state']> = new Set(['input_required', 'not_sent', 'unrecorded']);

/**
 * The fast path (architecture.md, decision 11): accept transaction, dispatch and complete transaction in the process
 * that took the request, when the agent can be reached from it and nothing has to wait. A message that lasts or asks a human is handed over to its workflow.
 */
export class FastPath {
  readonly #options: FastPathOptions;
  readonly #handOver: HandOver;
  #inFlight = 0;

  constructor(options: FastPathOptions) {
    this.#options = options;
    this.#handOver = new HandOver({ ...options.core, supervise: options.supervise });
  }

  /** Stops handing over; what is not handed over yet is the sweeper's once its lease has run out. */
  stop(): Promise<void> {
    return this.#handOver.stop();
  }

  /**
   * Accepts a message and sends its dispatch, where this process may; undefined where it takes nothing new.
   * @throws as `acceptInOne`
   */
  async send(
    draft: NewMessage,
    limits: CountLimits,
  ): Promise<{ row: AcceptRow; live: LiveMessage | null } | undefined> {
    const { core, runner } = this.#options;
    if (this.#inFlight >= IN_FLIGHT_MAX) return undefined;
    const dispatchId = newId('dsp');
    const lease = new Stopwatch();
    if (!runner.reserve(dispatchId)) return undefined;
    this.#inFlight += 1;
    let running: Promise<unknown> | undefined;
    try {
      const offer = { dispatch_id: dispatchId, mesh_id: runner.meshId };
      const { idempotencyHours } = core.limits;
      const row = await acceptInOne(core.db, draft, { limits, offer, idempotencyHours });
      if (row.verdict !== 'dispatched') return { row, live: null };
      const live = await this.#dispatch(draft, row, offer, lease);
      running = live?.ended;
      return { row, live };
    } finally {
      // Where only the answer of a commit was lost, this node will say that it never sent the dispatch.
      runner.releaseReservation(dispatchId);
      if (running) void running.then(() => this.#done());
      else this.#done();
    }
  }

  #done(): void {
    this.#inFlight -= 1;
  }

  async #dispatch(draft: NewMessage, row: AcceptRow, offer: Offer, lease: Stopwatch): Promise<LiveMessage | null> {
    const { runner } = this.#options;
    const message = dispatchedRow(draft, row);
    const open = openDispatchFrom(dispatchedDetails(draft, row, offer), row.accepted_at);
    // After the lease another process may have taken the message over.
    const ended = runner.send(open, () => lease.elapsedMs() < LEASE_MS);
    if (!ended) {
      await this.#release(message, offer.dispatch_id);
      return null;
    }
    this.#handOver.add(message);
    return { row: message, dispatch_id: offer.dispatch_id, ended: ended.then((end) => this.#ended(message, end)) };
  }

  /** Nothing went out: the message is routed again, by its workflow. */
  async #release(message: MessageRow, dispatchId: string): Promise<void> {
    const { core, dispatches } = this.#options;
    const ref = { tenant_id: message.tenant_id, message_id: message.message_id, dispatch_id: dispatchId };
    await dispatches.release(ref, 'NOT_REACHED_HERE', { nothingSent: true }).catch((error: unknown) => {
      // The workflow asks this node, which says that it never sent it.
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
