import type { TokenIssuer } from '../../auth/tokens.js';
import type { Db } from '../../db/pool.js';
import type { Outbound } from '../../http/outbound.js';
import type { DispatchRef } from '../../messages/dispatch/dispatch-ref.js';
import type { Dispatches, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { LocalEnd } from '../../messages/dispatch/local-mesh.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { AgentHealth } from '../connected/agent-health.js';
import { remember } from '../connected/inflight-table.js';
import { DEFAULT_TIMINGS, type MeshTimings } from '../connection/timings.js';
import type { DispatchEnd, Dispatcher } from '../dispatcher.js';
import { Reservations } from '../reservations.js';
import { HostedDelivery } from './delivery.js';
import { POLL_PACE, type PollPace } from './exchange.js';
import { HostedRun, watch } from './in-flight.js';
import { HostedRecovery } from './recovery.js';

export interface HostedOptions {
  dispatches: Dispatches;
  bus: Pick<ChunkBus, 'publish'>;
  outbound: Pick<Outbound, 'request' | 'stream'>;
  tokens: Pick<TokenIssuer, 'issueDispatchToken'>;
  db: Db;
  log: Logger;
  /** This node; every dispatch that it sends is marked with it. */
  meshId: string;
  /** Dispatches that this process is committing; shared with the mesh server. */
  reservations?: Reservations;
  timings?: Pick<MeshTimings, 'heartbeatMs' | 'reconcileMs'>;
  /** How often an unfinished task of an agent is asked for. */
  pace?: PollPace;
}

/** The dispatcher of hosted agents, which holds requests open and so has something to close. */
export interface HostedDispatcher extends Dispatcher {
  /**
   * Takes no more dispatches, waits up to `graceMs` for those in flight, and ends the rest as lost (`AGENT_DISCONNECTED`).
   */
  close(graceMs: number): Promise<void>;
}

class Hosted implements HostedDispatcher {
  readonly #options: HostedOptions;
  readonly #timings: Pick<MeshTimings, 'heartbeatMs' | 'reconcileMs'>;
  readonly #delivery: HostedDelivery;
  readonly #runs = new Map<string, HostedRun>();
  readonly #reservations: Reservations;
  /** Went out, and their supervisor has to write the end: a defect or a lasting refusal of the database, so there are few. */
  readonly #unwritten = new Set<string>();
  readonly #closing = new AbortController();
  readonly #reconciler: NodeJS.Timeout;
  #reconciling = false;
  #draining = false;

  constructor(options: HostedOptions) {
    this.#options = options;
    this.#timings = options.timings ?? DEFAULT_TIMINGS;
    this.#delivery = new HostedDelivery({
      ...options,
      health: new AgentHealth(options.db, options.log),
      recovery: new HostedRecovery({ ...options, closing: this.#closing.signal }),
      pace: options.pace ?? POLL_PACE,
      closing: this.#closing.signal,
      hasSent: (dispatchId) => this.#unwritten.has(dispatchId),
    });
    this.#reservations = options.reservations ?? new Reservations();
    this.#reconciler = setInterval(() => void this.#reconcile(), this.#timings.reconcileMs).unref();
  }

  async run(ref: DispatchRef, context: { heartbeat(): void; signal: AbortSignal }): Promise<DispatchEnd> {
    await this.#reservations.settled(ref.dispatch_id);
    const known = this.#runs.get(ref.dispatch_id);
    if (!known && this.#draining) return { kind: 'not_sent', reason: 'CLOSING' };
    const run = known ?? this.#start(new HostedRun(ref, (self) => this.#delivery.deliver(self)));
    return watch(run.end, context, this.#timings.heartbeatMs);
  }

  sendHere(open: OpenDispatch, leaseValid: () => boolean): Promise<LocalEnd> | null {
    if (this.#draining) return null;
    const { tenant_id, message_id, dispatch_id } = open;
    const ref = { tenant_id, message_id, dispatch_id };
    const run = this.#start(new HostedRun(ref, (self) => this.#delivery.deliverSent(self, open, leaseValid)));
    const ended = (): LocalEnd => run.localEnd;
    return run.end.then(ended, ended);
  }

  async cancel(ref: DispatchRef, reason: string): Promise<void> {
    await this.#reservations.settled(ref.dispatch_id);
    const run = this.#runs.get(ref.dispatch_id);
    if (!run) return;
    this.#options.log.info({ dispatch_id: ref.dispatch_id, reason }, 'hosted dispatch canceled');
    run.stop('canceled');
    await Promise.allSettled([run.end]);
    await run.cancelSent;
  }

  async close(graceMs: number): Promise<void> {
    this.#draining = true;
    clearInterval(this.#reconciler);
    const runs = [...this.#runs.values()];
    const timer = setTimeout(() => {
      for (const run of runs) run.stop('closing');
      this.#closing.abort(new Error('the process is closing'));
    }, graceMs);
    await Promise.allSettled(runs.map((run) => run.end));
    await Promise.all(runs.map((run) => run.cancelSent));
    clearTimeout(timer);
  }

  #start(run: HostedRun): HostedRun {
    const { ref } = run;
    this.#runs.set(ref.dispatch_id, run);
    const forget = (): void => void this.#runs.delete(ref.dispatch_id);
    // Nobody may be waiting any more, so a failure is told here as well.
    run.end.then(forget, (error) => {
      forget();
      if (run.wentOut) remember(this.#unwritten, ref.dispatch_id);
      this.#options.log.error({ err: errorMessage(error), dispatch_id: ref.dispatch_id }, 'hosted dispatch not ended');
    });
    return run;
  }

  /** Stops what was ended elsewhere: a cancel whose order was lost must not keep an agent working. */
  async #reconcile(): Promise<void> {
    if (this.#reconciling || this.#runs.size === 0) return;
    this.#reconciling = true;
    try {
      const closed = await this.#options.dispatches.closedAmong([...this.#runs.values()].map((run) => run.ref));
      for (const { dispatch_id } of closed) this.#runs.get(dispatch_id)?.stop('canceled');
    } catch (error) {
      this.#options.log.warn({ err: errorMessage(error) }, 'hosted dispatches not compared with the database');
    } finally {
      this.#reconciling = false;
    }
  }
}

/** Creates the dispatcher of hosted agents (decisions.md, Agents: Hosted dispatch). */
export function createHostedDispatcher(options: HostedOptions): HostedDispatcher {
  return new Hosted(options);
}
