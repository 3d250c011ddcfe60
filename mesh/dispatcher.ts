import type { DispatchRef } from '../messages/dispatches.js';

/**
 * How a dispatch ended here. `closed`: its row in the database says how. `not_sent`: nothing went out and nothing will, so
 * the caller may take it back and route the message again.
 */
export type DispatchEnd = { kind: 'closed' } | { kind: 'not_sent'; reason: string };

/** Brings dispatches to agents and their answers to the database. One for connected agents, one for hosted ones. */
export interface Dispatcher {
  /**
   * Sends a dispatch and waits for its end. A dispatch that already runs here is adopted, not sent again. While the database
   * is away it waits.
   * @param context.heartbeat called at the start and every 2 s
   * @param context.signal ends the waiting only (the promise rejects with its reason); the dispatch itself goes on
   */
  run(ref: DispatchRef, context: { heartbeat(): void; signal: AbortSignal }): Promise<DispatchEnd>;
  /** Tells the agent that the dispatch is canceled and forgets it, so that `run` resolves. Nothing happens when unknown here. */
  cancel(ref: DispatchRef, reason: string): Promise<void>;
}
