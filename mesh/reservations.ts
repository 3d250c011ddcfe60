/**
 * Dispatches that this process is committing and may send: known here before the database knows them, so that nobody who asks this node
 * for one takes it for a dispatch that was never sent.
 */
export class Reservations {
  readonly #open = new Map<string, { settled?: Promise<void>; settle?: () => void }>();

  /** Takes note of a dispatch by its id. */
  take(dispatchId: string): void {
    this.#open.set(dispatchId, {});
  }

  /** It runs here now, or it was given back. */
  release(dispatchId: string): void {
    const reservation = this.#open.get(dispatchId);
    this.#open.delete(dispatchId);
    reservation?.settle?.();
  }

  /** Resolves when the dispatch is not being committed here (any more). */
  async settled(dispatchId: string): Promise<void> {
    const reservation = this.#open.get(dispatchId);
    if (!reservation) return;
    reservation.settled ??= new Promise((resolve) => {
      reservation.settle = resolve;
    });
    await reservation.settled;
  }
}
