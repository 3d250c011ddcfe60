import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { type BusEvent, type BusItem, type BusListener, type ChunkBus, deliver, RETENTION_MS } from './bus.js';
import {
  APPEND_SCRIPTS,
  eventsAfter,
  eventsFromStart,
  eventsMaxFor,
  itemsOf,
  parseAnnouncement,
  type ReadPosition,
  readFrom,
} from './redis-stream.js';

/** Bytes sent to Redis and not yet confirmed; beyond, events are dropped as if Redis were away. */
const UNCONFIRMED_BYTES_MAX = 16 * 1024 * 1024;
const RETRY_MS_MAX = 1_000;
/** Channels whose gaps are remembered. For others, readers get dropped output only with the final task. */
const GAPS_MAX = 10_000;
/** A search for keys of a tenant ends after so many, or some more. */
const KEYS_MAX = 5_000;
const SCANNED_AT_ONCE = 1_000;

interface RedisBusOptions {
  url: string;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** The events of a message are kept this long after the newest; ten minutes by default. */
  retentionMs?: number;
}

interface Subscriber extends ReadPosition {
  channel: string;
  listener: BusListener;
  reading: boolean;
  /** An event was announced since the read under way began. */
  behind: boolean;
  /** It continues after a cursor, and gets `caught_up` after the first read. */
  resuming: boolean;
}

/**
 * The bus of several processes. A Redis stream for each message keeps the newest events. Each event is announced on the channel of the
 * same name: subscribers that have all events before it take it from there, and others read from their cursor. Listeners are never called
 * within `subscribe`.
 */
export class RedisBus implements ChunkBus {
  readonly #options: Required<RedisBusOptions>;
  readonly #commands: Redis;
  readonly #announcements: Redis;
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  /** Channels whose newest output was dropped. */
  readonly #gaps = new Set<string>();
  #unconfirmedBytes = 0;
  #dropped = 0;
  #isAway = false;
  #closed = false;

  constructor(options: RedisBusOptions) {
    this.#options = { retentionMs: RETENTION_MS, ...options };
    const common: RedisOptions = {
      // A command fails with its connection. With 1, a command in flight would never settle after a quick reconnection.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (attempt) => Math.min(attempt * 50, RETRY_MS_MAX),
    };
    this.#commands = new Redis(options.url, { ...common, scripts: APPEND_SCRIPTS });
    this.#announcements = new Redis(options.url, { ...common, enableOfflineQueue: false, autoResubscribe: false });
    for (const connection of [this.#commands, this.#announcements])
      connection.on('error', (error) => this.#noteAway(error));
    this.#commands.on('ready', () => this.#noteReachable());
    this.#announcements.on('ready', () => this.#resubscribe());
    this.#announcements.on('message', (channel: string, text: string) => this.#onAnnouncement(channel, text));
  }

  publish(tenantId: string, messageId: string, event: BusEvent): void {
    const text = JSON.stringify(event);
    const bytes = Buffer.byteLength(text);
    if (this.#closed) return;
    const channel = channelOf(tenantId, messageId);
    if (this.#unconfirmedBytes + bytes > UNCONFIRMED_BYTES_MAX) {
      this.#drop(channel, event, new Error('redis does not keep up'));
      return;
    }
    this.#unconfirmedBytes += bytes;
    const afterGap = this.#gaps.delete(channel) ? 1 : 0;
    this.#commands
      .appendEvent(channel, text, eventsMaxFor(bytes), this.#options.retentionMs, afterGap)
      .then(() => this.#isAway && this.#noteReachable()) // Redis was full, and has room again
      .catch((error) => this.#drop(channel, event, error, afterGap === 1))
      .finally(() => {
        this.#unconfirmedBytes -= bytes;
      });
  }

  subscribe(tenantId: string, messageId: string, afterCursor: number, listener: BusListener): () => void {
    const channel = channelOf(tenantId, messageId);
    const resuming = afterCursor > 0;
    const position = { cursor: afterCursor, unverified: resuming };
    const subscriber: Subscriber = { ...position, channel, listener, reading: false, behind: false, resuming };
    this.#subscribers.set(channel, (this.#subscribers.get(channel) ?? new Set()).add(subscriber));
    if (this.#announcements.status === 'ready') this.#subscribeTo([channel]);
    return () => this.#remove(subscriber);
  }

  async keysOf(tenantId: string, messageIds: readonly string[] | null): Promise<string[]> {
    if (messageIds) {
      const keys = messageIds.map((id) => channelOf(tenantId, id));
      const found = await Promise.all(keys.map((key) => this.#commands.exists(key)));
      return keys.filter((_, index) => found[index] === 1);
    }
    const keys = new Set<string>(); // a scan may give one twice
    // All keys with the tenant's id: output of its messages, and its counts of calls.
    for await (const found of this.#commands.scanStream({ match: `fleet:*${tenantId}*`, count: SCANNED_AT_ONCE })) {
      for (const key of found as string[]) keys.add(key);
      if (keys.size >= KEYS_MAX) break;
    }
    return [...keys];
  }

  async forget(_tenantId: string, _messageIds: readonly string[] | null, keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#commands.unlink(...keys);
  }

  async isReachable(): Promise<boolean> {
    return (await this.#commands.ping()) === 'PONG';
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#subscribers.clear();
    this.#announcements.disconnect();
    // Published events are sent first, while Redis is connected.
    if (this.#commands.status === 'ready') await this.#commands.quit().catch((error) => this.#noteAway(error));
    else this.#commands.disconnect();
  }

  /** Reads only after the subscription is confirmed: earlier events are read, later ones announced. */
  #subscribeTo(channels: string[]): void {
    if (channels.length === 0) return;
    const subscribed = this.#announcements.subscribe(...channels);
    subscribed.then(() => this.#readAll(channels)).catch((error) => this.#noteAway(error));
  }

  /** Events may have been announced meanwhile, or lost with Redis's memory. */
  #resubscribe(): void {
    for (const subscribers of this.#subscribers.values())
      for (const subscriber of subscribers) subscriber.unverified = subscriber.cursor > 0;
    this.#subscribeTo([...this.#subscribers.keys()]);
  }

  #remove(subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(subscriber.channel);
    if (!subscribers?.delete(subscriber) || subscribers.size > 0) return;
    this.#subscribers.delete(subscriber.channel);
    if (this.#announcements.status !== 'ready') return;
    this.#announcements.unsubscribe(subscriber.channel).catch((error) => this.#noteAway(error));
  }

  #readAll(channels: Iterable<string>): void {
    for (const channel of channels)
      for (const subscriber of this.#subscribers.get(channel) ?? []) this.#catchUp(subscriber);
  }

  #catchUp(subscriber: Subscriber): void {
    subscriber.behind = true;
    if (!subscriber.reading) this.#read(subscriber).catch((error) => this.#noteAway(error));
  }

  /** An announcement contains the event. Subscribers that have all events before it need no read. */
  #onAnnouncement(channel: string, text: string): void {
    const item = parseAnnouncement(text);
    for (const subscriber of [...(this.#subscribers.get(channel) ?? [])]) {
      const isNext = subscriber.cursor > 0 && item.cursor === subscriber.cursor + 1;
      if (isNext && !subscriber.reading && !subscriber.unverified) this.#deliver(subscriber, item);
      else if (subscriber.reading || subscriber.unverified || item.cursor > subscriber.cursor)
        this.#catchUp(subscriber);
    }
  }

  async #read(subscriber: Subscriber): Promise<void> {
    subscriber.reading = true;
    try {
      while (subscriber.behind && this.#isSubscribed(subscriber)) {
        subscriber.behind = false;
        for (const item of await this.#readNext(subscriber)) this.#deliver(subscriber, item);
        if (!subscriber.resuming) continue;
        subscriber.resuming = false;
        this.#deliver(subscriber, { cursor: subscriber.cursor, event: { kind: 'caught_up' }, bytes: 0 });
      }
    } finally {
      subscriber.reading = false;
    }
  }

  async #readNext(subscriber: Subscriber): Promise<BusItem[]> {
    const { channel, cursor, unverified } = subscriber;
    subscriber.unverified = false; // unless Redis goes away during the read
    try {
      const position = { cursor, unverified };
      const read = async (from: string) => itemsOf(await this.#commands.xrange(channel, from, '+'));
      return eventsAfter(await read(readFrom(position)), position) ?? eventsFromStart(await read('-'));
    } catch (error) {
      subscriber.unverified ||= unverified;
      throw error;
    }
  }

  #deliver(subscriber: Subscriber, item: BusItem): void {
    if (!this.#isSubscribed(subscriber)) return;
    subscriber.cursor = item.cursor;
    deliver(subscriber.listener, item, this.#options.log);
  }

  #isSubscribed(subscriber: Subscriber): boolean {
    return this.#subscribers.get(subscriber.channel)?.has(subscriber) ?? false;
  }

  #drop(channel: string, event: BusEvent, error: unknown, afterGap = false): void {
    if ((afterGap || event.kind !== 'changed') && this.#gaps.size < GAPS_MAX) this.#gaps.add(channel);
    this.#dropped += 1;
    this.#noteAway(error);
  }

  /** Logs once for each time that Redis goes away. Only chunks are lost: results are in Postgres. */
  #noteAway(error: unknown): void {
    if (this.#isAway || this.#closed) return;
    this.#isAway = true;
    this.#options.log.warn(
      { err: errorMessage(error) },
      'redis cannot be reached: output chunks are dropped until it can',
    );
  }

  #noteReachable(): void {
    if (this.#isAway) this.#options.log.info({ dropped: this.#dropped }, 'redis can be reached again');
    this.#isAway = false;
    this.#dropped = 0;
    this.#readAll(this.#subscribers.keys());
  }
}

function channelOf(tenantId: string, messageId: string): string {
  return `fleet:chunks:${tenantId}:${messageId}`;
}
