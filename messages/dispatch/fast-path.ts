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
import { openDispatchFrom } from './dispatch-payload.js';
import type { DispatchEnd, Dispatches } from './dispatches.js';
import { HandOver } from './hand-over.js';
import { LEASE_MS, Stopwatch } from './lease.js';
import type { LocalEnd, LocalMesh, Reservation } from './local-mesh.js';

type MessageEnd = NonNullable<DispatchEnd['message']>;

/** Messages that one process carries the fast path at once; further ones take the workflow path. */
const IN_FLIGHT_MAX = 2_000;

/** A message that takes the fast path in this process. */
export interface LiveMessage {
  /** Its row as T1 wrote it. */
  row: MessageRow;
  /** What T2 changed in it; null when something else did, which the row in the database tells. Never rejects. */
  ended: Promise<MessageEnd | null>;
}

export interface FastPathOptions {
  core: MessageCore;
  dispatches: Dispatches;
  mesh: LocalMesh;
  /** Starts or wakes the workflow of a message; resolves when Temporal has acknowledged it. */
  supervise(ref: { tenant_id: string; message_id: string; session_id: string }): Promise<void>;
}

/**
 * The fast path (architecture.md, decision 11): T1, the dispatch and T2 in the process that took the request, where the agent can be
 * reached from it and nothing has to wait. What then does last, ask or fail is handed over to the message's workflow.
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
   * T1 with the dispatch, where this process may send it; undefined where it takes nothing new.
   * @throws as `acceptInOne`
   */
  async send(
    draft: NewMessage,
    limits: CountLimits,
  ): Promise<{ row: AcceptRow; live: LiveMessage | null } | undefined> {
    const { core, mesh } = this.#options;
    if (this.#inFlight >= IN_FLIGHT_MAX) return undefined;
    const dispatchId = newId('dsp');
    const lease = new Stopwatch();
    const place = mesh.reserve(dispatchId);
    if (!place) return undefined;
    this.#inFlight += 1;
    let running: Promise<unknown> | undefined;
    try {
      const offer = { dispatch_id: dispatchId, mesh_id: mesh.meshId };
      const { idempotencyHours } = core.limits;
      const row = await acceptInOne(core.db, draft, { limits, offer, idempotencyHours });
      if (row.verdict !== 'dispatched') return { row, live: null };
      const live = await this.#dispatch(draft, row, offer, place, lease);
      running = live?.ended;
      return { row, live };
    } finally {
      // Where only the answer of a commit was lost, this node will say that it never sent the dispatch.
      place.release();
      if (running) void running.then(() => this.#done());
      else this.#done();
    }
  }

  #done(): void {
    this.#inFlight -= 1;
  }

  async #dispatch(
    draft: NewMessage,
    row: AcceptRow,
    offer: Offer,
    place: Reservation,
    lease: Stopwatch,
  ): Promise<LiveMessage | null> {
    const message = dispatchedRow(draft, row);
    const open = openDispatchFrom(dispatchedDetails(draft, row, offer), row.accepted_at);
    // Beyond the lease somebody else may have taken the message over.
    const ended = place.send(open, () => lease.elapsedMs() < LEASE_MS);
    if (!ended) {
      await this.#release(message, offer.dispatch_id);
      return null;
    }
    this.#handOver.add(message);
    return { row: message, ended: ended.then((end) => this.#ended(message, end)) };
  }

  /** Nothing went out: the message is routed again, by its workflow. */
  async #release(message: MessageRow, dispatchId: string): Promise<void> {
    const { core, dispatches } = this.#options;
    const ref = { tenant_id: message.tenant_id, message_id: message.message_id, dispatch_id: dispatchId };
    await dispatches.release(ref, 'NOT_REACHED_HERE', { nothingSent: true }).catch((error: unknown) => {
      // The workflow asks this node, which says that it never sent it.
      core.log.warn({ err: errorMessage(error), dispatch_id: dispatchId }, 'a dispatch could not be given back yet');
    });
    core.workflowStarter.message(message);
  }

  #ended(message: MessageRow, { end, needsWorkflow }: LocalEnd): MessageEnd | null {
    this.#handOver.remove(message);
    if (needsWorkflow) this.#options.core.workflowStarter.message(message);
    return end;
  }
}
