import { setMaxListeners } from 'node:events';
import type { AgentRef } from '../../agents/agent-row.js';
import { Loop } from '../../runtime/loop.js';
import { settledWithin } from '../../runtime/promises/settled-within.js';
import type { OpenDispatchRef } from '../dispatch/agent-dispatches.js';
import type { DispatchEnd, Dispatches, DispatchRef, OpenDispatch } from '../dispatch/dispatches.js';
import type { UncertainDispatch } from './lost-dispatches.js';
import { Reservations, RunningDispatch, RunningDispatches } from './running-dispatches.js';
import { Saturation } from './saturation.js';
import { DispatchSender } from './send-dispatch.js';
import type { SenderOptions, Taking } from './sender-options.js';
import type { Transport } from './transport.js';

/** Extra time for the writes that are under way when the grace period is over. */
const LAST_WRITES_MS = 5_000;
/** Dispatches compared with the record in one statement. */
const RECONCILED_AT_ONCE = 1_000;

type DeploymentMode = OpenDispatch['deployment_mode'];

export interface RunnerOptions extends SenderOptions {
  /** How often running dispatches are compared with the record. */
  reconcileMs?: number;
  /** Dispatches in flight to all agents; `LIMITS.dispatchesInFlightPerNode` by default. */
  inFlightMax?: number;
}

/** Runs every dispatch of this process: has its transport send it and records its end. */
export class DispatchRunner {
  readonly meshId: string;
  /** Transports publish through it, so that guards inspect all output first. */
  readonly output: DispatchSender['output'];
  readonly counts: DispatchSender['counts'];
  readonly #running: RunningDispatches;
  readonly #saturation: Saturation;
  readonly #reservations = new Reservations();
  readonly #sender: DispatchSender;
  /** Compares what runs here with the record. */
  readonly #reconciliation: Loop;
  readonly #closing = new AbortController();
  #transports: Partial<Record<DeploymentMode, Transport>> = {};
  #draining = false;

  constructor(options: RunnerOptions) {
    const { dispatches, db, log, meshId, reconcileMs = 2_000, inFlightMax } = options;
    this.meshId = meshId;
    const running = new RunningDispatches({ inFlightMax, onFull: (agent) => void this.#saturation.mark(agent) });
    this.#running = running;
    this.#saturation = new Saturation({
      db,
      log,
      meshId,
      fill: (agent) => sender.taking?.fill(agent),
      isFull: (agent, part) => running.isFull(agent, part),
    });
    setMaxListeners(0, this.#closing.signal); // each write that waits for the database adds a listener
    const sender = new DispatchSender(options, this.#closing.signal);
    this.#sender = sender;
    this.output = sender.output;
    this.counts = sender.counts;
    const work = () => this.#reconcile(dispatches);
    this.#reconciliation = new Loop({ name: 'dispatch reconciliation', intervalMs: reconcileMs, work, log });
  }

  /** Starts the comparison with the record. A dispatch needs the transport of its mode. */
  start(transports: Partial<Record<DeploymentMode, Transport>>): void {
    this.#transports = transports;
    this.#reconciliation.start();
    this.#saturation.start();
  }

  /** From here on agents get queued messages. */
  takeBy(taking: Taking): void {
    this.#sender.taking = taking;
  }

  /** Aborted when the process ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The running dispatches, to be counted and waited for. */
  get running(): Pick<RunningDispatches, 'size' | 'countOf' | 'countOfTenant' | 'whenAgentIdle' | 'whenIdle'> {
    return this.#running;
  }

  /**
   * If this node has no room for the agent, resolves when that is on the record, where routing reads it, or could not be written in time. To be awaited before
   * a dispatch that `send` has refused is released, so that another agent or node takes its message.
   */
  async saturationKnown(agent: AgentRef): Promise<void> {
    await this.#saturation.known(agent);
  }

  /** How many further dispatches this node takes for an agent now, and the epoch of its connection here; null where it has none that is ready. */
  roomFor(agent: AgentRef): { atMost: number; epoch: number | null } {
    const epoch = this.#transports.connected?.epochOf({ ...agent, epoch: null }) ?? null;
    return { atMost: this.#draining ? 0 : this.#running.roomFor(agent), epoch };
  }

  /** Whether this node takes anything more for the agents of a tenant. */
  hasRoomFor(tenantId: string): boolean {
    return !this.#draining && this.#running.hasRoomFor(tenantId);
  }

  /**
   * Notes the id of a dispatch, and the time, before the transaction that opens it.
   * @returns false while the node drains; else `releaseReservation` must follow `send`
   */
  reserve(dispatchId: string): boolean {
    if (!this.#draining) this.#reservations.add(dispatchId);
    return !this.#draining;
  }

  /** Notes the time anew, before the transaction that marks a reserved dispatch as sent. */
  renewReservation(dispatchId: string): void {
    this.#reservations.renew(dispatchId);
  }

  releaseReservation(dispatchId: string): void {
    this.#reservations.release(dispatchId);
  }

  /**
   * Sends a dispatch that is reserved here and on the record as sent by this node.
   * @returns null when it cannot be sent from here: then nothing has been, and nothing will. The promise never rejects
   */
  send(open: OpenDispatch): Promise<DispatchEnd> | null {
    const transport = this.#transports[open.deployment_mode];
    const clock = this.#reservations.clockOf(open.dispatch_id);
    if (this.#draining || !transport || !clock?.isInTime || this.#running.isFull(open)) return null;
    // If the epoch differs, the agent has reconnected since the dispatch was opened.
    if (transport.epochOf(open) !== open.epoch) return null;
    const running = this.#add(open, transport);
    running.begin(this.#sender.sendAndRecord(running, open, clock));
    return running.done;
  }

  /** A dispatch that may be on the record as sent by this node was not sent and never will be: if it is there, it is released. */
  noteNothingSent({ tenant_id, dispatch_id }: Omit<UncertainDispatch, 'nothingSent'>): void {
    this.#sender.lost.note({ tenant_id, dispatch_id, nothingSent: true });
  }

  /** The dispatch was canceled on the record: tells its agent and ends it. Does nothing when it is unknown here. */
  async cancel(ref: DispatchRef, reason: string): Promise<void> {
    await this.#reservations.settled(ref.dispatch_id);
    const running = this.#running.get(ref.dispatch_id);
    if (!running) return;
    running.close('canceled', reason);
    await Promise.allSettled([running.done]);
    await running.transport.cancelSent?.(ref.dispatch_id);
  }

  /**
   * Resolves when no dispatch of a connected agent is being recorded. It does not wait for dispatches whose agent has not answered. None is `starting`, because
   * connected agents need no signed token.
   */
  async writesSettled(agentKey: string): Promise<void> {
    const running = this.#running.ofAgent(agentKey);
    await Promise.allSettled(running.filter(({ phase }) => phase === 'recording').map(({ done }) => done));
  }

  /** The agent resumed: its dispatches go on under the new epoch. */
  agentResumed(agentKey: string, epoch: number): void {
    for (const running of this.#running.ofAgent(agentKey)) running.epoch = epoch;
  }

  /**
   * Continues a dispatch that another node offered and this one accepted. The dispatch was reserved before the record named this node as its owner.
   * @param progress as for `Transport.adopt`
   */
  adopt(open: OpenDispatch, progress: string): void {
    const transport = this.#transports[open.deployment_mode];
    if (!transport) {
      this.noteUncertain(open.tenant_id, [open.dispatch_id]);
      return;
    }
    const running = this.#add(open, transport);
    running.begin(this.#sender.adopt(running, open, progress));
  }

  /** The record may or may not name this node as the owner of these dispatches, which do not run here: they are never sent again. */
  noteUncertain(tenantId: string, dispatchIds: readonly string[]): void {
    for (const dispatch_id of dispatchIds)
      this.#sender.lost.note({ tenant_id: tenantId, dispatch_id, nothingSent: false });
  }

  /** The agent is gone: its dispatches fail, or are released when nothing was sent. Resolves when that is on the record. */
  async agentLost(agentKey: string): Promise<void> {
    const lost = this.#running.ofAgent(agentKey);
    for (const running of lost) running.stop('lost');
    await Promise.allSettled(lost.map(({ done }) => done));
  }

  /** As `agentLost`, when a new connection of the agent does not continue the one before. @param open its open dispatches on the record */
  async agentReplaced(agentKey: string, open: OpenDispatchRef[]): Promise<void> {
    // A dispatch that was being committed here runs now, or was released.
    await Promise.all(open.map((ref) => this.#reservations.settled(ref.dispatch_id)));
    await this.agentLost(agentKey);
    await Promise.all(open.map((ref) => this.#sender.lost.endUnowned(ref)));
  }

  /**
   * Takes nothing new, waits up to `graceMs` for running dispatches, offers the others to other nodes or ends them as lost, and resolves when
   * all ends are recorded.
   */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const running = this.#running.all();
    const ended = Promise.allSettled(running.map(({ done }) => done));
    await settledWithin(ended, graceMs);
    await Promise.all(Object.values(this.#transports).map((transport) => transport.transfer?.()));
    for (const dispatch of running) dispatch.stop('closing');
    await settledWithin(ended, LAST_WRITES_MS);
    this.#closing.abort(new Error('the process is closing'));
    await ended;
    await Promise.all(running.map(({ ref, transport }) => transport.cancelSent?.(ref.dispatch_id)));
    await this.#reconciliation.stop();
    await this.#saturation.stop();
  }

  /**
   * Stops dispatches that ended elsewhere: an agent must not keep working because its cancel was lost. Ends those that the record may name as this
   * node's and that do not run.
   */
  async #reconcile(dispatches: Pick<Dispatches, 'closedAmong'>): Promise<void> {
    const sending = this.#running.all().filter(({ phase }) => phase === 'sending');
    for (let start = 0; start < sending.length; start += RECONCILED_AT_ONCE) {
      const refs = sending.slice(start, start + RECONCILED_AT_ONCE).map(({ ref }) => ref);
      for (const { dispatch_id, state } of await dispatches.closedAmong(refs))
        this.#running.get(dispatch_id)?.close(state, '');
    }
    await this.#sender.lost.mend();
  }

  #add(open: OpenDispatch, transport: Transport): RunningDispatch {
    const running = new RunningDispatch(open, transport);
    this.#running.add(running, open);
    void running.done.then(() => this.#running.remove(running));
    return running;
  }
}
