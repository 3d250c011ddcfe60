import { LRUCache } from 'lru-cache';
import type { MessageCore } from '../core.js';
import type { AcceptRow, CountLimits } from './accept-transaction.js';

/** How long a count of messages in flight is valid, from the moment at which it was requested; and while a newer count is under way. */
const [IN_FLIGHT_VALID_MS, IN_FLIGHT_OLD_VALID_MS] = [1_000, 5_000];
/** The same for messages that are queued, and for those that wait for input. There may be very many; those that wait for input change slowly. */
const [QUEUED_VALID_MS, WAITING_VALID_MS] = [1_000, 5_000];
/** The share of the free room that one process uses before it counts again. */
const SHARE = 1 / 8;
const TENANTS_MAX = 10_000;

/** The limits for one message that is being accepted. */
export interface BoundsCheck {
  readonly counting: CountLimits;
  /** To be called once, also after a failure. @param counted the counts of the accept transaction; null after a failure */
  done(counted: Pick<AcceptRow, 'in_flight' | 'queued' | 'waiting'> | null): void;
}

/** A bound whose messages are counted once in `validMs`, whether or not it is reached. Messages that are accepted between two counts may exceed it. */
class CountedAtTimes {
  /** When the newest count was requested; -Infinity before the first and after a failure. On `performance.now()`. */
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #isFull = false;

  constructor(
    private readonly max: number,
    private readonly validMs: number,
  ) {}

  /** @returns the limit to count to, 0 for none; whether the bound is known to be reached; and what notes the count, null after a failure */
  begin(): { limit: number; isFull: boolean; done: (count: number | null) => void } {
    const nowMs = performance.now();
    if (nowMs - this.#countedAtMs <= this.validMs) return { limit: 0, isFull: this.#isFull, done: () => undefined };
    this.#countedAtMs = nowMs; // until this count is done, other messages use the one before
    return { limit: this.max, isFull: false, done: (count) => this.#note(nowMs, count) };
  }

  #note(requestedAtMs: number, count: number | null): void {
    if (requestedAtMs !== this.#countedAtMs) return; // a newer count is under way
    if (count === null) this.#countedAtMs = Number.NEGATIVE_INFINITY;
    else this.#isFull = count >= this.max;
  }
}

/**
 * The bound at which messages queue and none is refused. One count is valid for a second, and until this process has used an eighth of the free room. While the
 * next count is under way it stays valid for five: a count reads all messages that agents have, and beside an old transaction all that they had since.
 */
class CountedByRoom {
  /** When the known count was requested; -Infinity before the first. On `performance.now()`. */
  #countedAtMs = Number.NEGATIVE_INFINITY;
  /** Messages that may still be accepted on that count. */
  #spare = 0;
  /** Messages that are being accepted without a count. */
  #uncounted = 0;
  #isCounting = false;

  constructor(private readonly max: number) {}

  /** @returns the limit to count to, 0 for none, and what notes the count, null after a failure */
  begin(): { limit: number; done: (count: number | null) => void } {
    const nowMs = performance.now();
    const validMs = this.#isCounting ? IN_FLIGHT_OLD_VALID_MS : IN_FLIGHT_VALID_MS;
    if (this.#spare <= 0 || nowMs - this.#countedAtMs > validMs) {
      this.#isCounting = true;
      return { limit: this.max, done: (count) => this.#note(nowMs, count) };
    }
    this.#spare -= 1;
    this.#uncounted += 1;
    return {
      limit: 0,
      done: () => {
        this.#uncounted -= 1;
      },
    };
  }

  #note(requestedAtMs: number, count: number | null): void {
    this.#isCounting = false;
    if (count === null || requestedAtMs < this.#countedAtMs) return;
    this.#countedAtMs = requestedAtMs;
    this.#spare = Math.floor((this.max - count) * SHARE) - this.#uncounted;
  }
}

interface TenantCounts {
  inFlight: CountedByRoom;
  queued: CountedAtTimes;
  waiting: CountedAtTimes;
}

/**
 * The limits of a tenant's messages: those that agents have, beyond which further ones queue; those that are queued and those that wait for input, beyond which
 * new ones are refused. A count of thousands of messages costs more than the rest of the accept transaction, so it counts only when this process needs a new
 * count. Several processes together may exceed the limit of messages that agents have, each by an eighth of the room that it found.
 */
export class MessageBounds {
  readonly queuedMax: number;
  readonly waitingMax: number;
  /** `Retry-After` of refused messages: the time until the tenant's messages are counted again. */
  readonly queuedRetrySeconds = QUEUED_VALID_MS / 1_000;
  readonly waitingRetrySeconds = WAITING_VALID_MS / 1_000;
  readonly #inFlightMax: number;
  readonly #tenants = new LRUCache<string, TenantCounts>({ max: TENANTS_MAX });

  constructor(limits: Pick<MessageCore['limits'], 'tenantMaxInFlight' | 'tenantMaxQueued' | 'tenantMaxWaiting'>) {
    this.#inFlightMax = limits.tenantMaxInFlight;
    this.queuedMax = limits.tenantMaxQueued;
    this.waitingMax = limits.tenantMaxWaiting;
  }

  begin(tenantId: string): BoundsCheck {
    const counts = this.#countsOf(tenantId);
    const inFlight = counts.inFlight.begin();
    const queued = counts.queued.begin();
    const waiting = counts.waiting.begin();
    return {
      counting: {
        in_flight_limit: inFlight.limit,
        queued_limit: queued.limit,
        queued_full: queued.isFull,
        waiting_limit: waiting.limit,
        waiting_full: waiting.isFull,
      },
      done: (counted) => {
        inFlight.done(counted?.in_flight ?? null);
        queued.done(counted?.queued ?? null);
        waiting.done(counted?.waiting ?? null);
      },
    };
  }

  #countsOf(tenantId: string): TenantCounts {
    const known = this.#tenants.get(tenantId);
    if (known) return known;
    const counts = {
      inFlight: new CountedByRoom(this.#inFlightMax),
      queued: new CountedAtTimes(this.queuedMax, QUEUED_VALID_MS),
      waiting: new CountedAtTimes(this.waitingMax, WAITING_VALID_MS),
    };
    this.#tenants.set(tenantId, counts);
    return counts;
  }
}
