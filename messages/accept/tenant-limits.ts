import { LRUCache } from 'lru-cache';
import type { MessageCore } from '../core.js';
import type { AcceptRow, CountLimits } from './accept-transaction.js';

/** How long a count of messages in flight is valid, from the moment at which it was requested. */
const IN_FLIGHT_VALID_MS = 1_000;
/** The same for messages that wait for input: they may be very many, and their number changes slowly. */
const WAITING_VALID_MS = 5_000;
/** The share of the free room that one process uses before it counts again. */
const SHARE = 1 / 8;
const TENANTS_MAX = 10_000;

interface TenantCounts {
  /** When the known count was requested; -Infinity before the first. */
  inFlightCountedAtMs: number;
  /** Messages that may still be accepted on that count. */
  spare: number;
  /** Messages that are being accepted without a count. */
  uncounted: number;
  /** When the newest count was requested; -Infinity before the first and after a failure. */
  waitingCountedAtMs: number;
  waitingFull: boolean;
}

/** The limits for one message that is being accepted. */
export interface Admission {
  readonly counting: CountLimits;
  /** To be called once, also after a failure. @param counted the counts of the accept transaction; null after a failure */
  done(counted: Pick<AcceptRow, 'in_flight' | 'waiting'> | null): void;
}

/**
 * The limits of a tenant's messages in flight and of those that wait for input. A count of thousands of messages costs more than the rest
 * of the accept transaction, so it counts only when this process needs a new count:
 * - In flight: while there is much room, one count is valid for a second and for an eighth of the room. Near the limit every message counts.
 *   Several processes together may exceed the limit by an eighth of the room that each found.
 * - Waiting for input: one message in five seconds counts, also at the limit. Messages in flight at a count may ask later, so the limit may
 *   be exceeded by their number.
 */
export class TenantLimits {
  readonly inFlightMax: number;
  readonly waitingMax: number;
  /** For callers that were refused: the time until the waiting messages are counted again. */
  readonly waitingRetrySeconds = WAITING_VALID_MS / 1_000;
  readonly #tenants = new LRUCache<string, TenantCounts>({ max: TENANTS_MAX });

  constructor(limits: Pick<MessageCore['limits'], 'tenantMaxInFlight' | 'tenantMaxWaiting'>) {
    this.inFlightMax = limits.tenantMaxInFlight;
    this.waitingMax = limits.tenantMaxWaiting;
  }

  begin(tenantId: string): Admission {
    const tenant = this.#countsOf(tenantId);
    const now = performance.now();
    const countInFlight = tenant.spare <= 0 || now - tenant.inFlightCountedAtMs > IN_FLIGHT_VALID_MS;
    const countWaiting = now - tenant.waitingCountedAtMs > WAITING_VALID_MS;
    if (countWaiting) tenant.waitingCountedAtMs = now; // until it is done, other messages use the count before
    if (!countInFlight) {
      tenant.spare -= 1;
      tenant.uncounted += 1;
    }
    return {
      counting: {
        in_flight_limit: countInFlight ? this.inFlightMax : 0,
        waiting_limit: countWaiting ? this.waitingMax : 0,
        waiting_full: !countWaiting && tenant.waitingFull,
      },
      done: (counted) => {
        if (countInFlight) this.#noteInFlight(tenant, now, counted?.in_flight ?? null);
        else tenant.uncounted -= 1;
        if (countWaiting) this.#noteWaiting(tenant, now, counted?.waiting ?? null);
      },
    };
  }

  #noteInFlight(tenant: TenantCounts, countedAtMs: number, inFlight: number | null): void {
    if (inFlight === null || countedAtMs < tenant.inFlightCountedAtMs) return;
    tenant.inFlightCountedAtMs = countedAtMs;
    tenant.spare = Math.floor((this.inFlightMax - inFlight) * SHARE) - tenant.uncounted;
  }

  #noteWaiting(tenant: TenantCounts, countedAtMs: number, waiting: number | null): void {
    if (countedAtMs !== tenant.waitingCountedAtMs) return; // a newer count is under way
    if (waiting === null) tenant.waitingCountedAtMs = Number.NEGATIVE_INFINITY;
    else tenant.waitingFull = waiting >= this.waitingMax;
  }

  #countsOf(tenantId: string): TenantCounts {
    const known = this.#tenants.get(tenantId);
    if (known) return known;
    const never = Number.NEGATIVE_INFINITY;
    const counts = {
      inFlightCountedAtMs: never,
      spare: 0,
      uncounted: 0,
      waitingCountedAtMs: never,
      waitingFull: false,
    };
    this.#tenants.set(tenantId, counts);
    return counts;
  }
}
