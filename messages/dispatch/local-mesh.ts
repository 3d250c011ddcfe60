import type { OpenDispatch } from './dispatches.js';
import type { MessageEnd } from './transactions.js';

/** The mesh role of this process, as far as the fast path needs it; handed in. */
export interface LocalMesh {
  readonly meshId: string;
  /**
   * Takes note of a dispatch before it is committed: whoever asks this node for it from now on waits until it is sent or given up.
   * Null when the node takes nothing new.
   */
  reserve(dispatchId: string): Reservation | null;
}

/** How a dispatch that this process sent ended. */
export interface LocalEnd {
  /** What that changed in the message's row; null when it did not end the message, or something else did. */
  end: MessageEnd | null;
  /** The message goes on (given back, a question, an end that could not be written): its workflow has to. */
  needsWorkflow: boolean;
}

/** The place of a dispatch that is about to be committed. */
export interface Reservation {
  /**
   * Sends the dispatch, which is on the record as sent.
   * @param leaseValid asked right before the first byte: false once somebody else may have taken the message over
   * @returns null when it cannot go out from here: then nothing has, and nothing will. Else how it ended, once that is on the record
   */
  send(open: OpenDispatch, leaseValid: () => boolean): Promise<LocalEnd> | null;
  /** Ends the reservation, sent or not. */
  release(): void;
}
