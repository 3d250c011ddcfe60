import { Redis } from 'ioredis';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { PlatformError } from '../runtime/errors.js';
import { settledWithin } from '../runtime/promises/settled-within.js';

/** Keys that are counted at once; of more, the one that was used longest ago is forgotten, so a flood costs accuracy, not memory. */
const KEYS_MAX = 10_000;
/** Counts that Redis has not answered yet; further ones stay in this process. */
const UNANSWERED_MAX = 1_000;
const LEARN_MS_MAX = 100;
/** A connection that gives no answer for this long is broken and opened again. */
const SILENT_MS_MAX = 5_000;

/** A connection to Redis for the counts of all nodes. `messages/stream` logs when Redis cannot be reached. */
export function connectRateLimits(url: string): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    socketTimeout: SILENT_MS_MAX,
  });
  redis.on('error', () => undefined);
  return redis;
}

/**
 * Limits what is counted by key, in fixed windows. Every process counts in its memory and decides by that, so no call waits for Redis.
 * Where there is a Redis, each count also goes there in the background, and the answer raises the count here to that of all nodes: together
 * they pass the limit by what each accepts until its first answer. While Redis is away each process limits by itself, which is why there
 * is no `insuranceLimiter`; RateLimiterMemory would also keep any number of keys.
 */
export class RateLimit {
  readonly #limit: number;
  readonly #counts: LRUCache<string, number>;
  readonly #shared: RateLimiterRedis | null;
  #unanswered = 0;

  /** @param options.name tells the keys of one limit from those of another in Redis */
  constructor(options: { name: string; limit: number; windowSeconds: number; redis: Redis | null }) {
    const { name, limit, windowSeconds, redis } = options;
    this.#limit = limit;
    const perf = { now: () => performance.now() };
    this.#counts = new LRUCache({ max: KEYS_MAX, ttl: windowSeconds * 1_000, ttlResolution: 0, perf });
    this.#shared =
      redis &&
      new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: `fleet:limit:${name}`,
        points: limit,
        duration: windowSeconds,
        rejectIfRedisNotReady: true,
      });
  }

  /** @throws PlatformError `RATE_LIMITED` with `Retry-After` when the key has used up its window */
  check(key: string, message: string): void {
    if ((this.#counts.get(key) ?? 0) < this.#limit) return;
    const seconds = Math.max(1, Math.ceil(this.#counts.getRemainingTTL(key) / 1_000));
    throw new PlatformError('RATE_LIMITED', message, { headers: { 'Retry-After': String(seconds) } });
  }

  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1, { noUpdateTTL: true });
    if (!this.#shared || this.#unanswered >= UNANSWERED_MAX) return;
    this.#unanswered += 1;
    void this.#raise(key, this.#shared.penalty(key)).finally(() => this.#unanswered--);
  }

  /** Waits for the count of all nodes, `LEARN_MS_MAX` at most. For logins: a guesser must not begin anew at each node. */
  async learn(key: string): Promise<void> {
    if (this.#shared) await settledWithin(this.#raise(key, this.#shared.get(key)), LEARN_MS_MAX);
  }

  /** Never rejects: without an answer the count of this process stands. */
  async #raise(key: string, answer: Promise<RateLimiterRes | null>): Promise<void> {
    const shared = await answer.catch(() => null);
    if (!shared || shared.msBeforeNext <= 0 || shared.consumedPoints <= (this.#counts.get(key) ?? 0)) return;
    this.#counts.set(key, shared.consumedPoints, { ttl: shared.msBeforeNext });
  }
}

/** The network by which an address is limited: the /64 of an IPv6 address, which one host owns; an IPv4 address itself, also mapped into IPv6. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
