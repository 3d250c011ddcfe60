/**
 * Where in a message's life something can go wrong, in the words of both paths: `T1` and `marked` are the moment at which the dispatch is
 * on the record as sent and no byte of it has gone out, `scheduled` the one before `marked`; `ending` and `ended` are before and after
 * the transaction that takes the agent's answer.
 */
export type Point = 'accepted' | 'scheduled' | 'marked' | 'ending' | 'ended';

/** What goes wrong; it may throw what the interrupted work is to fail with. */
type Strike = (messageId: string, point: Point) => Promise<unknown>;

/** The one fault that waits for its point. */
export class Faults {
  #armed: { points: readonly Point[]; strike: Strike } | null = null;

  /** It faults once, at the first of these points that is reached. */
  arm(points: readonly Point[], strike: Strike): void {
    this.#armed = { points, strike };
  }

  disarm(): void {
    this.#armed = null;
  }

  async at(point: Point, messageId: string): Promise<void> {
    const armed = this.#armed;
    if (!armed?.points.includes(point)) return;
    this.#armed = null;
    await armed.strike(messageId, point);
  }
}
