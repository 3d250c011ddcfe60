import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { BusEvent, ChunkBus, PlacedEvent } from './bus.js';
import { RETENTION_MS } from './message-buffer.js';
import { deliver } from './notify-listeners.js';
import { APPEND_SCRIPTS, retainedWith } from './redis-append.js';
import { announcedEvent, eventsAfter, eventsFromStart, readFrom, type StreamPosition } from './redis-entries.js';

/** Bytes handed to Redis and not yet confirmed; beyond, events are dropped as if Redis were away. */
const UNCONFIRMED_BYTES_MAX = 16 * 1024 * 1024;
const RETRY_MS_MAX = 1_000;
/** Messages of which it is known that output was dropped; of more than these, only the end of the task mends it. */
const HOLED_MAX = 10_000;

interface RedisBusOptions {
  url: string;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** How long a message's events are kept after the newest; ten minutes by default. */
  retentionMs?: number;
}

interface Follower extends StreamPosition {
  channel: string;
  listener: (placed: PlacedEvent) => void;
  reading: boolean;
  /** Something was announced while a read was under way. */
  behind: boolean;
  /** It goes on after a cursor and has to be told once that it has caught up. */
  resuming: boolean;
}

class RedisBus implements ChunkBus {
  readonly #options: Required<RedisBusOptions>;
  readonly #commands: Redis;
  readonly #announcements: Redis;
  readonly #followers = new Map<string, Set<Follower>>();
  /** Channels to which output was not brought since the last that was. */
  readonly #holed = new Set<string>();
  #unconfirmedBytes = 0;
  #dropped = 0;
  #away = false;
  #closed = false;

  constructor(options: RedisBusOptions) {
    this.#options = { retentionMs: RETENTION_MS, ...options };
    const common: RedisOptions = {
      // A command fails with its connection: with 1, one that was in flight would never settle after a quick reconnection.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (attempt) => Math.min(attempt * 50, RETRY_MS_MAX),
    };
    this.#commands = new Redis(options.url, { ...common, scripts: APPEND_SCRIPTS });
    this.#announcements = new Redis(options.url, { ...common, enableOfflineQueue: false, autoResubscribe: false });
    for (const connection of [this.#commands, this.#announcements])
      connection.on('error', (error) => this.#noteAway(error));
    this.#commands.on('ready', () => this.#back());
    this.#announcements.on('ready', () => this.#listenAgain());
    this.#announcements.on('message', (channel: string, text: string) => this.#announced(channel, text));
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
    const afterHole = this.#holed.delete(channel) ? 1 : 0;
    this.#commands
      .appendEvent(channel, text, retainedWith(bytes), this.#options.retentionMs, afterHole)
      .catch((error) => this.#drop(channel, event, error, afterHole === 1))
      .finally(() => {
        this.#unconfirmedBytes -= bytes;
      });
  }

  subscribe(
    tenantId: string,
    messageId: string,
    afterCursor: number,
    listener: (placed: PlacedEvent) => void,
  ): () => void {
    const channel = channelOf(tenantId, messageId);
    const resuming = afterCursor > 0;
    const place = { cursor: afterCursor, unproven: resuming };
    const follower: Follower = { ...place, channel, listener, reading: false, behind: false, resuming };
    const others = this.#followers.get(channel);
    this.#followers.set(channel, (others ?? new Set()).add(follower));
    if (this.#announcements.status === 'ready') this.#listen([channel]);
    return () => this.#leave(follower);
  }

  async isReachable(): Promise<boolean> {
    return (await this.#commands.ping()) === 'PONG';
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#followers.clear();
    this.#announcements.disconnect();
    // What was published goes out first, where there is somebody to take it.
    if (this.#commands.status === 'ready') await this.#commands.quit().catch((error) => this.#noteAway(error));
    else this.#commands.disconnect();
  }

  /** Reads only after the subscription stands: what comes later is announced, what came before is read. */
  #listen(channels: string[]): void {
    if (channels.length === 0) return;
    this.#announcements.subscribe(...channels).then(
      () => {
        for (const channel of channels) this.#readAll(channel);
      },
      (error) => this.#noteAway(error),
    );
  }

  /** What was announced meanwhile, or is lost with Redis's memory, has to be found out. */
  #listenAgain(): void {
    for (const follower of [...this.#followers.values()].flatMap((some) => [...some])) {
      follower.unproven = follower.cursor > 0;
    }
    this.#listen([...this.#followers.keys()]);
  }

  #leave(follower: Follower): void {
    const followers = this.#followers.get(follower.channel);
    if (!followers?.delete(follower) || followers.size > 0) return;
    this.#followers.delete(follower.channel);
    if (this.#announcements.status !== 'ready') return;
    this.#announcements.unsubscribe(follower.channel).catch((error) => this.#noteAway(error));
  }

  #readAll(channel: string): void {
    for (const follower of this.#followers.get(channel) ?? []) this.#catchUp(follower);
  }

  #catchUp(follower: Follower): void {
    follower.behind = true;
    if (!follower.reading) this.#read(follower).catch((error) => this.#noteAway(error));
  }

  /** An announcement carries the event, for those who stand right before it. */
  #announced(channel: string, text: string): void {
    const placed = announcedEvent(text);
    for (const follower of [...(this.#followers.get(channel) ?? [])]) {
      const isNext = follower.cursor > 0 && placed.cursor === follower.cursor + 1;
      if (isNext && !follower.reading && !follower.unproven) this.#hand(follower, placed);
      else if (follower.reading || follower.unproven || placed.cursor > follower.cursor) this.#catchUp(follower);
    }
  }

  async #read(follower: Follower): Promise<void> {
    follower.reading = true;
    try {
      while (follower.behind && this.#follows(follower)) {
        follower.behind = false;
        for (const placed of await this.#next(follower)) this.#hand(follower, placed);
        if (!follower.resuming) continue;
        follower.resuming = false;
        this.#hand(follower, { cursor: follower.cursor, event: { kind: 'caught_up' }, bytes: 0 });
      }
    } finally {
      follower.reading = false;
    }
  }

  async #next(follower: Follower): Promise<PlacedEvent[]> {
    const { channel, cursor, unproven } = follower;
    follower.unproven = false; // unless Redis goes away while this reads
    try {
      const place = { cursor, unproven };
      const told = eventsAfter(await this.#commands.xrange(channel, readFrom(place), '+'), place);
      return told ?? eventsFromStart(await this.#commands.xrange(channel, '-', '+'));
    } catch (error) {
      follower.unproven ||= unproven;
      throw error;
    }
  }

  #hand(follower: Follower, placed: PlacedEvent): void {
    if (!this.#follows(follower)) return;
    follower.cursor = placed.cursor;
    deliver(follower.listener, placed, this.#options.log);
  }

  #follows(follower: Follower): boolean {
    return this.#followers.get(follower.channel)?.has(follower) ?? false;
  }

  #drop(channel: string, event: BusEvent, error: unknown, afterHole = false): void {
    if ((afterHole || event.kind !== 'changed') && this.#holed.size < HOLED_MAX) this.#holed.add(channel);
    this.#dropped += 1;
    this.#noteAway(error);
  }

  /** One line for each time that Redis goes away; results are in Postgres, so only chunks are lost. */
  #noteAway(error: unknown): void {
    if (this.#away || this.#closed) return;
    this.#away = true;
    this.#options.log.warn(
      { err: errorMessage(error) },
      'redis cannot be reached: output chunks are dropped until it can',
    );
  }

  #back(): void {
    if (this.#away) this.#options.log.info({ dropped: this.#dropped }, 'redis can be reached again');
    this.#away = false;
    this.#dropped = 0;
    for (const channel of this.#followers.keys()) this.#readAll(channel);
  }
}

function channelOf(tenantId: string, messageId: string): string {
  return `fleet:chunks:${tenantId}:${messageId}`;
}

/**
 * The bus of several processes: one Redis stream per message keeps the newest events, an announcement on the channel of
 * the same name brings the newest to followers that have all before it, and makes others read on from their cursor. Listeners are called later, never within `subscribe`.
 */
export function createRedisBus(options: RedisBusOptions): ChunkBus {
  return new RedisBus(options);
}
