import { isTerminal } from '../contracts/messages.js';
import type { DispatchRef } from '../messages/dispatch/dispatch-ref.js';
import type { OpenDispatch } from '../messages/dispatch/dispatches.js';
import type { LocalEnd } from '../messages/dispatch/local-mesh.js';
import type { MessageEnd } from '../messages/dispatch/transactions.js';
import { type StepError, stepError } from '../messages/supervise/step.js';

/**
 * How a dispatch ended here. `closed`: its row in the database says how; with `final`, this node wrote that end and the message's with
 * it, which failed for the reason in `error`. `not_sent`: nothing went out and nothing will, so the caller may take it back and route the
 * message again.
 */
export type DispatchEnd = { kind: 'closed'; final?: string; error?: StepError } | { kind: 'not_sent'; reason: string };

/** A dispatch, and where the message's workflow knows that it goes. */
export interface RoutedDispatch extends DispatchRef {
  instance_id?: string;
}

/** Brings dispatches to agents and their answers to the database. One for connected agents, one for hosted ones. */
export interface Dispatcher {
  /**
   * Sends a dispatch and waits for its end. A dispatch that already runs here is adopted, not sent again. While the database
   * is away it waits.
   * @param context.heartbeat called at the start and every 2 s
   * @param context.signal ends the waiting only (the promise rejects with its reason); the dispatch itself goes on
   */
  run(ref: RoutedDispatch, context: { heartbeat(): void; signal: AbortSignal }): Promise<DispatchEnd>;
  /**
   * Sends a dispatch that is on the record as sent by this node, and that nobody has sent yet.
   * @param leaseValid asked right before the first byte; false: it is given back
   * @returns null when it cannot go out from here: then nothing has, and nothing will. Else how it ended, once that is on the record
   */
  sendHere(open: OpenDispatch, leaseValid: () => boolean): Promise<LocalEnd> | null;
  /** Tells the agent that the dispatch is canceled and forgets it, so that `run` resolves. Nothing happens when unknown here. */
  cancel(ref: DispatchRef, reason: string): Promise<void>;
}

/** The end of a dispatch that is closed. @param end what this node changed in the message's row with it; null for nothing */
export function closedWith(end: MessageEnd | null): DispatchEnd {
  if (!end || !isTerminal(end.state)) return { kind: 'closed' };
  return { kind: 'closed', final: end.state, ...stepError(end.error_code, end.error_message) };
}
