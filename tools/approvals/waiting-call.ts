import { randomUUID } from 'node:crypto';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import type { CallCancellation, CallParent, ToolRequest } from '../call-context.js';

/** A call whose message waits, or is about to wait, for a human. Its deadline stands still until it is disposed of. */
export class WaitingCall implements Disposable {
  readonly request: ToolRequest;
  readonly cancellation: CallCancellation;
  readonly dispatch: DispatchRef & { session_id: string };
  /** A UUID of this call alone, by which the record lets it pass once, however often it asks. */
  readonly useId = randomUUID();
  /** Aborted when the call is canceled, or its caller is to ask again. */
  readonly until: AbortSignal;
  #hasBegun = false;

  constructor(
    request: ToolRequest,
    { session_id = '' }: Pick<CallParent, 'session_id'>,
    dispatch: DispatchRef,
    cancellation: CallCancellation,
  ) {
    const { asksAgainAfterMs } = request;
    this.request = request;
    this.cancellation = cancellation;
    this.dispatch = { ...dispatch, session_id };
    const again = asksAgainAfterMs === undefined ? [] : [AbortSignal.timeout(asksAgainAfterMs)];
    this.until = AbortSignal.any([cancellation.signal, ...again]);
    cancellation.pause();
  }

  /** Tells the caller, once, that its call waits: a human is asked about it, or about another call first. */
  begin(): void {
    if (!this.#hasBegun) this.request.whileWaiting?.begin();
    this.#hasBegun = true;
  }

  [Symbol.dispose](): void {
    if (this.#hasBegun) this.request.whileWaiting?.end();
    this.cancellation.resume();
  }
}
