import { errorMessage } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import { type AcceptRow, acceptInOne, type CountTo, type NewMessage } from '../accept/accept-transaction.js';
import { writtenRow } from '../accept/draft.js';
import type { MessageCore } from '../core.js';
import type { DispatchRow, MessageRow } from '../read/rows.js';
import type { DispatchRunner } from '../runner/runner.js';
import { openDispatchFrom } from './dispatch-payload.js';
import type { DispatchEnd, Dispatches } from './dispatches.js';
import { HandOver } from './hand-over.js';
import { LEASE_MS, Stopwatch } from './lease.js';

/** Messages that one process has on the fast path at once; further ones take the workflow path. */
const IN_FLIGHT_MAX = 2_000;

/** A message that takes the fast path in this process. */
export interface LiveMessage {
  /** Its row as T1 wrote it. */
  row: MessageRow;
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
 * The fast path (architecture.md, decision 11): T1, the dispatch and T2 in the process that took the request, when the agent can be
 * reached from it and nothing has to wait. A message that lasts or asks a human is handed over to its workflow.
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
  async send(draft: NewMessage, countTo: CountTo): Promise<{ row: AcceptRow; live: LiveMessage | null } | undefined> {
    const { core, runner } = this.#options;
    if (this.#inFlight >= IN_FLIGHT_MAX) return undefined;
    const dispatchId = newId('dsp');
    const lease = new Stopwatch();
    if (!runner.reserve(dispatchId)) return undefined;
    this.#inFlight += 1;
    let running: Promise<unknown> | undefined;
    try {
      const row = await acceptInOne(core.db, draft, countTo, { dispatch_id: dispatchId, mesh_id: runner.meshId });
      if (row.verdict !== 'dispatched') return { row, live: null };
      const live = await this.#dispatch(draft, row, dispatchId, lease);
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

  async #dispatch(
    draft: NewMessage,
    row: AcceptRow,
    dispatchId: string,
    lease: Stopwatch,
  ): Promise<LiveMessage | null> {
    const { runner } = this.#options;
    const session_id = row.its_session;
    const dispatched = { instance_id: row.its_instance, agent_type: row.its_type, current_dispatch_id: dispatchId };
    const message = writtenRow(draft, row.at, { session_id, ...dispatched });
    const dispatch = sentDispatch(message, row, dispatchId, runner.meshId);
    const around = { user_id: row.its_user, public_url: row.its_url, agent_card: row.its_card ?? {} };
    const open = openDispatchFrom(message, dispatch, around, row.at);
    // After the lease another process may have taken the message over.
    const ended = runner.send(open, () => lease.elapsedMs() < LEASE_MS);
    if (!ended) {
      await this.#release(message, dispatchId);
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

function sentDispatch(message: MessageRow, row: AcceptRow, dispatchId: string, meshId: string): DispatchRow {
  return {
    tenant_id: message.tenant_id,
    dispatch_id: dispatchId,
    message_id: message.message_id,
    session_id: message.session_id,
    instance_id: row.its_instance,
    agent_type: row.its_type,
    deployment_mode: row.its_mode,
    mesh_id: meshId,
    epoch: row.its_epoch,
    attempt: 1,
    state: 'open',
    skill_id: message.want_skill_id,
    created_at: row.at,
    sent_at: row.at,
    deadline_at: new Date(row.at.getTime() + message.deadline_ms),
    ended_at: null,
    error_code: null,
  };
}
