/** How long a count of a tenant's messages that wait for input is good for, from when it was asked for. */
const FRESH_MS = 5_000;
/** Tenants whose counts are remembered. */
const TENANTS_MAX = 10_000;

interface Tenant {
  /** When the newest count was asked for. */
  countedAtMs: number;
  full: boolean;
}

/** What T1 does about the messages that wait for input. */
export interface WaitingCount {
  /** What T1 is to count to; 0 when it need not. */
  readonly limit: number;
  /** So many waited at the newest count that no message is accepted. */
  readonly full: boolean;
  /** @param waiting what T1 has counted; null where it has not, or failed. To be called once, whatever became of T1. */
  done(waiting: number | null): void;
}

/**
 * The bound of a tenant's messages that wait for input. They may be very many and change slowly, so one message in five seconds has them
 * counted, at the bound too. What is in flight at a count may ask as well: the bound may be passed by that much.
 */
export class WaitingBound {
  /** Messages of a tenant that wait for input. */
  readonly limit: number;
  /** For who was refused, in seconds: until they are counted again. */
  readonly retryAfterSeconds = FRESH_MS / 1_000;
  readonly #tenants = new Map<string, Tenant>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Begins the accepting of a message. */
  begin(tenantId: string): WaitingCount {
    const askedAtMs = performance.now();
    const known = this.#tenants.get(tenantId);
    if (known && askedAtMs - known.countedAtMs <= FRESH_MS)
      return { limit: 0, full: known.full, done: () => undefined };
    if (!known && this.#tenants.size >= TENANTS_MAX) this.#tenants.clear();
    // Others that come meanwhile go by what was known.
    const tenant = { countedAtMs: askedAtMs, full: known?.full ?? false };
    this.#tenants.set(tenantId, tenant);
    return {
      limit: this.limit,
      full: false,
      done: (waiting) => {
        if (waiting === null) tenant.countedAtMs = Number.NEGATIVE_INFINITY;
        else tenant.full = waiting >= this.limit;
      },
    };
  }
}
