/**
 * Where in a message's life something can go wrong, in the words of both paths: `accepted` and `marked` are the moment at which the dispatch is
 * on the record as sent and no byte of it has gone out, `scheduled` the one before `marked`; `completing` and `completed` are before and after
 * the transaction that takes the agent's answer.
 */
export type Point = 'accepted' | 'scheduled' | 'marked' | 'completing' | 'completed';

/** The one fault that waits for its point. */
export class Faults {
  /** Faults that have happened. */
  happened = 0;
  #armed: { points: readonly Point[]; inject: (messageId: string, point: Point) => Promise<unknown> } | null = null;

  /** It happens once, at the first of its points that is reached. */
  arm(points: readonly Point[], inject: (messageId: string, point: Point) => Promise<unknown>): void {
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
