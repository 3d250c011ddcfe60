/** About ten nanoseconds each. One decision may cost 10 ms of the process that all tenants share. */
const UNITS_MAX = 1_000_000;
/** Characters in which a text is searched in a unit. */
export const SEARCHED_CHARS = 16;

/** What one decision may still cost. Work whose cost may exceed what is left is not begun, whatever a tenant configures. */
export class Budget {
  #left = UNITS_MAX;

  /** Nothing more may be done. */
  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** As `take`, for work that may save other work: it may use half of the budget at most. */
  takeOptional(units: number): boolean {
    return units <= Math.max(0, this.#left - UNITS_MAX / 2) && this.take(units);
  }

  /** Counts work that is done and was bounded by the size of the request. */
  spend(units: number): void {
    this.#left -= units;
  }

  /** Takes the cost of the next piece of work, before it is done. @returns false: it is too dear, and must not be done */
  take(units: number): boolean {
    if (!(units <= this.#left)) return false;
    this.#left -= units;
    return true;
  }
}
