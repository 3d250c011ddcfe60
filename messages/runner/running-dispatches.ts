import type { AgentRef } from '../../agents/agent-row.js';
import { LIMITS } from '../../contracts/limits.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { DispatchEnd, DispatchRef, OpenDispatch } from '../dispatch/dispatches.js';
import type { ClosedState, DispatchStop, StopReason, Transport } from './transport.js';

type Phase = 'starting' | 'sending' | 'recording';

/** A dispatch that runs in this process, from before its first byte goes out until its end is on the record. */
export class RunningDispatch implements DispatchStop {
  readonly ref: DispatchRef;
  readonly transport: Transport;
  /** Resolves with the end of the dispatch. */
  readonly done: Promise<DispatchEnd>;
  readonly agentKey: string;
  /** Epoch of the connection that it runs under; a resume raises it. */
  epoch: number;
  /** What is sent; undefined while `starting`. */
  open: OpenDispatch | undefined;
  /** Another node has published the beginning of its output. */
  isContinued = false;
  #phase: Phase = 'starting';
  #stopped: StopReason | undefined;
  #settle: (end: Promise<DispatchEnd>) => void = () => undefined;
  #onStop: (() => void) | undefined;

  constructor(open: DispatchRef & AgentRef & Pick<OpenDispatch, 'epoch'>, transport: Transport) {
    const { tenant_id, message_id, dispatch_id, epoch } = open;
    this.ref = { tenant_id, message_id, dispatch_id };
    this.agentKey = agentKeyOf(open);
    this.epoch = epoch;
    this.transport = transport;
    this.done = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get phase(): Phase {
    return this.#phase;
  }

  get stopped(): StopReason | undefined {
    return this.#stopped;
  }

  onStop(listener: () => void): void {
    this.#onStop = listener;
  }

  begin(work: Promise<DispatchEnd>): void {
    this.#settle(work);
  }

  enter(phase: 'sending' | 'recording'): void {
    this.#phase = phase;
  }

  /** Stops a dispatch that is closed on the record, or `denied` (a guard withholds its output), and tells its agent. */
  close(state: ClosedState, reason: string): void {
    if (this.open && this.#phase === 'sending') this.transport.notifyClosed?.(this.open, state, reason);
    this.stop(state === 'denied' ? 'denied' : 'closed');
  }

  /** Stops the wait for a result. Only the first reason counts, and none once the result is being recorded. */
  stop(reason: StopReason): void {
    if (this.#phase === 'recording' || this.#stopped) return;
    this.#stopped = reason;
    this.#onStop?.();
  }
}

/**
 * Bounds what is in flight in a process and shares it among tenants: a tenant may take more while it has less than is still free. One tenant alone gets half of
 * `max`, and there is always room left for another.
 */
export class FairShare {
  readonly #max: number;
  #total = 0;
  readonly #byTenant = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether the tenant may take nothing more now. @param part of its share that counts as all of it, up to 1 */
  isUsedUp(tenantId: string, part = 1): boolean {
    return this.countOf(tenantId) >= part * (this.#max - this.#total);
  }

  countOf(tenantId: string): number {
    return this.#byTenant.get(tenantId) ?? 0;
  }

  add(tenantId: string): void {
    this.#total += 1;
    this.#byTenant.set(tenantId, this.countOf(tenantId) + 1);
  }

  remove(tenantId: string): void {
    const left = this.countOf(tenantId) - 1;
    this.#total -= 1;
    if (left > 0) this.#byTenant.set(tenantId, left);
    else this.#byTenant.delete(tenantId);
  }
}

export interface RunningDispatchesOptions {
  /** Dispatches of all agents; `LIMITS.dispatchesInFlightPerNode` by default. */
  inFlightMax?: number;
  /** Called when an agent has got the last dispatch that it may have. */
  onFull(agent: AgentRef): void;
}

/** The dispatches that run in this process, by id and by agent. */
export class RunningDispatches {
  readonly #byId = new Map<string, RunningDispatch>();
  readonly #byAgent = new Map<string, Set<RunningDispatch>>();
  readonly #share: FairShare;
  readonly #onFull: (agent: AgentRef) => void;
  readonly #idleListeners = new Map<string, () => void>();
  #onIdle: (() => void) | undefined;

  constructor({ inFlightMax = LIMITS.dispatchesInFlightPerNode, onFull }: RunningDispatchesOptions) {
    this.#share = new FairShare(inFlightMax);
    this.#onFull = onFull;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(dispatchId: string): RunningDispatch | undefined {
    return this.#byId.get(dispatchId);
  }

  all(): RunningDispatch[] {
    return [...this.#byId.values()];
  }

  ofAgent(agentKey: string): RunningDispatch[] {
    return [...(this.#byAgent.get(agentKey) ?? [])];
  }

  /** How many dispatches of this tenant run. */
  countOfTenant(tenantId: string): number {
    return this.#share.countOf(tenantId);
  }

  /** How many dispatches to this agent run. */
  countOf(agentKey: string): number {
    return this.#byAgent.get(agentKey)?.size ?? 0;
  }

  /** Adds a dispatch, which counts on its agent and tenant. */
  add(running: RunningDispatch, agent: AgentRef): void {
    const ofAgent = (this.#byAgent.get(running.agentKey) ?? new Set()).add(running);
    this.#byId.set(running.ref.dispatch_id, running);
    this.#byAgent.set(running.agentKey, ofAgent);
    this.#share.add(agent.tenant_id);
    if (ofAgent.size === LIMITS.dispatchesInFlightPerConnection) this.#onFull(agent);
  }

  /**
   * Whether the agent may have no further dispatch from here: it has its maximum, or its tenant has its share of the node.
   * @param part of both, up to 1
   */
  isFull(agent: AgentRef, part = 1): boolean {
    const count = this.countOf(agentKeyOf(agent));
    return count >= part * LIMITS.dispatchesInFlightPerConnection || this.#share.isUsedUp(agent.tenant_id, part);
  }

  /** Whether a tenant has less than its share of the node. */
  hasRoomFor(tenantId: string): boolean {
    return !this.#share.isUsedUp(tenantId);
  }

  /** How many further dispatches the agent may have from here: none where its tenant has its share of the node. */
  roomFor(agent: AgentRef): number {
    if (this.#share.isUsedUp(agent.tenant_id)) return 0;
    return Math.max(0, LIMITS.dispatchesInFlightPerConnection - this.countOf(agentKeyOf(agent)));
  }

  remove(running: RunningDispatch): void {
    const { ref, agentKey } = running;
    this.#byId.delete(ref.dispatch_id);
    this.#share.remove(ref.tenant_id);
    const ofAgent = this.#byAgent.get(agentKey);
    ofAgent?.delete(running);
    if (ofAgent?.size === 0) {
      this.#byAgent.delete(agentKey);
      const listener = this.#idleListeners.get(agentKey);
      this.#idleListeners.delete(agentKey);
      listener?.();
    }
    if (this.#byId.size === 0) this.#onIdle?.();
  }

  /** @param listener called when the last dispatch of the agent has ended; it replaces the listener before */
  whenAgentIdle(agentKey: string, listener: () => void): void {
    this.#idleListeners.set(agentKey, listener);
  }

  /** @param listener called when the last dispatch of all has ended; it replaces the listener before */
  whenIdle(listener: () => void): void {
    this.#onIdle = listener;
  }
}

/** A dispatch whose first byte is not out so long after it was written as sent is released, in milliseconds. */
const SENT_WITHIN_MS = 5_000;

/** Runs from before a dispatch is written as sent. Only the wall clock counts while the machine sleeps. */
export class SendClock {
  readonly #monotonicMs = performance.now();
  readonly #wallMs = Date.now();

  /** Whether the dispatch may still be sent. */
  get isInTime(): boolean {
    return Math.max(performance.now() - this.#monotonicMs, Date.now() - this.#wallMs) < SENT_WITHIN_MS;
  }
}

/** A dispatch that is being committed here. */
interface Reservation {
  clock: SendClock;
  settled?: Promise<void>;
  settle?: () => void;
}

/**
 * Dispatches that a transaction is committing here, as it accepts or takes messages. They are noted before the database has them, so that a cancel or a new
 * connection of the agent waits until they run.
 */
export class Reservations {
  readonly #open = new Map<string, Reservation>();

  add(dispatchId: string): void {
    this.#open.set(dispatchId, { clock: new SendClock() });
  }

  /** Starts the clock of a reserved dispatch anew. */
  renew(dispatchId: string): void {
    const reservation = this.#open.get(dispatchId);
    if (reservation) reservation.clock = new SendClock();
  }

  /** Undefined where the dispatch is not reserved. */
  clockOf(dispatchId: string): SendClock | undefined {
    return this.#open.get(dispatchId)?.clock;
  }

  /** To be called once the dispatch runs here, or will not run. */
  release(dispatchId: string): void {
    const reservation = this.#open.get(dispatchId);
    this.#open.delete(dispatchId);
    reservation?.settle?.();
  }

  /** Resolves when the dispatch is not being committed here. */
  async settled(dispatchId: string): Promise<void> {
    const reservation = this.#open.get(dispatchId);
    if (!reservation) return;
    reservation.settled ??= new Promise((resolve) => {
      reservation.settle = resolve;
    });
    await reservation.settled;
  }
}
