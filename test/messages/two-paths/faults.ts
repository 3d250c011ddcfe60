/**
 * Where in a message's life something can go wrong, in the words of both paths: `accepted` and `marked` are the moment at which the dispatch is
 * on the record as sent and no byte of it has gone out, `scheduled` the one before `marked`; `completing` and `completed` are before and after
 * the transaction that takes the agent's answer.
 */
export type Point = 'accepted' | 'scheduled' | 'marked' | 'completing' | 'completed';

/** Makes something go wrong; it may throw what the interrupted work is to fail with. */
type Inject = (messageId: string, point: Point) => Promise<unknown>;

/** The one fault that waits for its point. */
export class Faults {
  /** Faults that have happened. */
  happened = 0;
  #armed: { points: readonly Point[]; inject: Inject } | null = null;

  /** It happens once, at the first of these points that is reached. */
  arm(points: readonly Point[], inject: Inject): void {
    this.#armed = { points, inject };
  }

  disarm(): void {
    this.#armed = null;
  }

  async at(point: Point, messageId: string): Promise<void> {
    const armed = this.#armed;
    if (!armed?.points.includes(point)) return;
    this.#armed = null;
    this.happened += 1;
    await armed.inject(messageId, point);
  }
}
