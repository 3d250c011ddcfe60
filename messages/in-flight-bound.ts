/** How long a count of a tenant's messages in flight is good for. */
const FRESH_MS = 1_000;
/** Of the room that a count has found, the share that one process takes without counting again: several of them take none twice. */
const SHARE = 1 / 8;
/** Tenants whose counts are remembered. */
const TENANTS_MAX = 10_000;

interface Counted {
  atMs: number;
  /** Messages that may be accepted before the next count. */
  spare: number;
}

/**
 * Spares T1 the counting of a tenant's messages in flight while there is much room: to count thousands that wait costs more than all the
 * rest of T1. Near its bound they are counted each time.
 */
export class InFlightBound {
  readonly #most: number;
  readonly #counted = new Map<string, Counted>();

  /** @param most messages of a tenant in flight */
  constructor(most: number) {
    this.#most = most;
  }

  /** What T1 is to count to for the next message of the tenant; 0 when it need not. */
  next(tenantId: string): number {
    const counted = this.#counted.get(tenantId);
    if (!counted || counted.spare === 0 || performance.now() - counted.atMs > FRESH_MS) return this.#most;
    counted.spare -= 1;
    return 0;
  }

  /** @param inFlight what T1 has counted; null where it has not */
  learn(tenantId: string, inFlight: number | null): void {
    if (inFlight === null) return;
    if (this.#counted.size >= TENANTS_MAX) this.#counted.clear();
    const spare = Math.floor((this.#most - inFlight) * SHARE);
    this.#counted.set(tenantId, { atMs: performance.now(), spare });
  }
}
