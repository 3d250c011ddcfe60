/**
 * Who waits for vectors, the most urgent first: a search, a call that is answered when its small text is taken in, and jobs, for which nobody
 * waits.
 */
export const LANES = ['query', 'inline', 'bulk'] as const;
export type Lane = (typeof LANES)[number];

/** Every so many turns the least urgent work has one, so that it goes on however much else there is. */
const LAST_FIRST_EVERY = 8;

/** Work that waits, in lanes: the more urgent lane first, and in each lane in the order in which it came. */
export class LaneQueue<Work> {
  readonly #lanes: Record<Lane, Work[]> = { query: [], inline: [], bulk: [] };
  #turns = 0;

  /** How much waits in a lane. */
  waiting(lane: Lane): number {
    return this.#lanes[lane].length;
  }

  get isEmpty(): boolean {
    return LANES.every((lane) => this.#lanes[lane].length === 0);
  }

  push(lane: Lane, work: readonly Work[]): void {
    this.#lanes[lane] = this.#lanes[lane].concat(work);
  }

  /** Takes what comes next. */
  next(): Work | undefined {
    this.#turns += 1;
    const order = this.#turns % LAST_FIRST_EVERY === 0 ? LANES.toReversed() : LANES;
    const lane = order.find((one) => this.#lanes[one].length > 0);
    return lane && this.#lanes[lane].shift();
  }

  /** Takes out work that is not wanted any more. */
  remove(lane: Lane, unwanted: ReadonlySet<Work>): void {
    this.#lanes[lane] = this.#lanes[lane].filter((work) => !unwanted.has(work));
  }

  /** Takes out everything. */
  clear(): Work[] {
    const all = LANES.flatMap((lane) => this.#lanes[lane]);
    for (const lane of LANES) this.#lanes[lane] = [];
    return all;
  }
}
