/** How long a count of a tenant's messages in flight is good for, from when it was asked for. */
const FRESH_MS = 1_000;
/** Of the room that a count has found, the share that one process takes without counting again. */
const SHARE = 1 / 8;
/** Tenants whose counts are remembered. */
const TENANTS_MAX = 10_000;

interface Tenant {
  /** When the count that is known was asked for; -Infinity before the first. */
  countedAtMs: number;
  /** Messages that may still be accepted on that count. */
  spare: number;
  /** Messages that are being accepted without a count. */
  underWay: number;
}

/** One message that is being accepted. */
export interface Counting {
  /** What T1 is to count to; 0 when it need not. */
  readonly limit: number;
  /** @param inFlight what T1 has counted; null where it has not, or failed. To be called once, whatever became of T1. */
  done(inFlight: number | null): void;
}

/**
 * Spares T1 the counting of a tenant's messages in flight while there is much room: to count thousands that wait costs more than all the
 * rest of T1. Near the bound they are counted each time. Beside others that do the same, a process may pass the bound by an eighth of the
 * room that it last found, within a second.
 */
export class InFlightLimit {
  /** Messages of a tenant in flight. */
  readonly limit: number;
  readonly #tenants = new Map<string, Tenant>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Begins the accepting of a message. */
  begin(tenantId: string): Counting {
    const tenant = this.#of(tenantId);
    const askedAtMs = performance.now();
    if (tenant.spare <= 0 || askedAtMs - tenant.countedAtMs > FRESH_MS) {
      return { limit: this.limit, done: (inFlight) => this.#learn(tenant, askedAtMs, inFlight) };
    }
    tenant.spare -= 1;
    tenant.underWay += 1;
    return {
      limit: 0,
      done: () => {
        tenant.underWay -= 1;
      },
    };
  }

  #learn(tenant: Tenant, askedAtMs: number, inFlight: number | null): void {
    if (inFlight === null || askedAtMs < tenant.countedAtMs) return;
    tenant.countedAtMs = askedAtMs;
    tenant.spare = Math.floor((this.limit - inFlight) * SHARE) - tenant.underWay;
  }

  #of(tenantId: string): Tenant {
    const known = this.#tenants.get(tenantId);
    if (known) return known;
    if (this.#tenants.size >= TENANTS_MAX) this.#tenants.clear();
    const fresh = { countedAtMs: Number.NEGATIVE_INFINITY, spare: 0, underWay: 0 };
    this.#tenants.set(tenantId, fresh);
    return fresh;
  }
}
