import type { DispatchState } from '../dispatch/dispatch-states.js';
import type { AgentResult, OpenDispatch } from '../dispatch/dispatches.js';

/** The agent of a dispatch. `epoch`: of its connection, from the record; null if the record was not read. */
export interface Destination {
  tenant_id: string;
  instance_id: string;
  epoch: number | null;
}

/** The result of a dispatch. `transferred`: the agent continues the dispatch at another node, which records its end. */
export type TransportResult = AgentResult | { state: 'transferred' };

/** Its state on the record, or `denied`: a guard withholds its output, and its end is not written yet. */
export type ClosedState = DispatchState | 'denied';

/** Why a dispatch was stopped: it is closed on the record, its agent is gone, a guard withholds its output, or the process is closing. */
export type StopReason = 'closed' | 'lost' | 'denied' | 'closing';

/** What ends a transport's wait for a result. It is no AbortSignal, which would cost time and memory for every message, while hardly any is stopped. */
export interface DispatchStop {
  readonly stopped: StopReason | undefined;
  /** @param listener called once, when it stops; it replaces the listener before */
  onStop(listener: () => void): void;
}

/** Carries dispatches to agents and results back. It never writes the state of a message or dispatch. */
export interface Transport {
  /** The epoch to send under; null where nothing can be sent to the agent now. */
  epochOf(agent: Destination): number | null;
  /** Signs the token of a dispatch's request, before the first byte goes out. */
  sign?(dispatch: Pick<OpenDispatch, 'tenant_id' | 'instance_id' | 'dispatch_id'>): Promise<string>;
  /**
   * Sends a dispatch and waits for its result; chunks go to the bus meanwhile.
   * @param stop ends the wait: the result is then `lost`, or `not_sent` when nothing went out
   * @param token from `sign`
   */
  send(dispatch: OpenDispatch, stop: DispatchStop, token?: string): Promise<TransportResult>;
  /** As `send`, for a dispatch that its agent received from another node. @param progress the output so far, as that node wrote it */
  adopt?(dispatch: OpenDispatch, progress: string, stop: DispatchStop): Promise<TransportResult>;
  /**
   * Offers the dispatches that are still running to the next nodes of their agents; their results here are then `transferred`. Called when
   * the grace of a stop is over. Never rejects.
   */
  transfer?(): Promise<void>;
  /** Resolves when the agent's epoch is not being raised. */
  epochSettled?(agent: Destination): Promise<void>;
  /** Tells the agent that its dispatch is closed: CANCELED, GUARD_DENIED for `denied`, or DISPATCH_ALREADY_TERMINAL with the state. */
  notifyClosed?(dispatch: OpenDispatch, state: ClosedState, reason: string): void;
  /** Resolves when the request that cancels an aborted dispatch has been answered or has failed. */
  cancelSent?(dispatchId: string): Promise<void>;
  /** Called when a result of the dispatch made its agent `unhealthy`. */
  onBecameUnhealthy?(dispatch: OpenDispatch, result: AgentResult): void;
}
