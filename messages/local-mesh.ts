import type { OpenDispatch } from './dispatches.js';
import type { MessageEnd } from './transactions.js';

/** The mesh role of this process, as far as the short way needs it; handed in. */
export interface LocalMesh {
  readonly meshId: string;
  /**
   * Takes note of a dispatch before it is committed: whoever asks this node for it from now on waits until it is sent or given up.
   * Null when the node takes nothing new.
   */
  reserve(dispatchId: string): Reservation | null;
}

/** The place of a dispatch that is about to be committed. */
export interface Reservation {
  /**
   * Sends the dispatch, which is on the record as sent.
   * @returns null when it cannot go out from here: then nothing has, and nothing will. Else what its end changed in the message's row
   * once it is on the record; `null` in there when this node did not end the message with it (canceled, given back, a question)
   */
  send(open: OpenDispatch): Promise<MessageEnd | null> | null;
  /** Ends the reservation, sent or not. */
  release(): void;
}
