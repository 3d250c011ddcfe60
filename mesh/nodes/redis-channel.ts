import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { Secrets } from '../../runtime/secrets.js';
import { type NodeMessage, parseNodeMessage } from './node-message.js';
import { type DroppedMessage, openMessage, signMessage } from './signed-message.js';

const RETRY_MS_MAX = 1_000;
/** Bytes published and not yet confirmed by Redis; beyond, the channel is not ready. */
const UNCONFIRMED_BYTES_MAX = 16 * 1024 * 1024;
/** Dropped messages are logged this often at most, so that whoever can write to Redis cannot fill the log. */
const LOGGED_EVERY_MS = 60_000;

export interface RedisChannelOptions {
  url: string;
  meshId: string;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  secrets: Pick<Secrets, 'mac' | 'macs'>;
  /** Counts the messages that were not taken. */
  dropped: Record<DroppedMessage, number>;
}

/** Signed messages between nodes: listens on the node's own Redis channel, and publishes to those of other nodes. */
export class RedisChannel {
  readonly #listeners: ((message: NodeMessage) => void)[] = [];
  readonly #name: string;
  readonly #log: RedisChannelOptions['log'];
  readonly #secrets: RedisChannelOptions['secrets'];
  readonly #dropped: RedisChannelOptions['dropped'];
  readonly #commands: Redis;
  readonly #listener: Redis;
  #unconfirmedBytes = 0;
  #dropLoggedAtMs = Number.NEGATIVE_INFINITY;
  #away = false;
  #closed = false;

  constructor({ url, meshId, log, secrets, dropped }: RedisChannelOptions) {
    this.#name = nameOf(meshId);
    this.#log = log;
    this.#secrets = secrets;
    this.#dropped = dropped;
    const common: RedisOptions = {
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      retryStrategy: (attempt) => Math.min(attempt * 50, RETRY_MS_MAX),
    };
    this.#commands = new Redis(url, common);
    this.#listener = new Redis(url, common);
    for (const connection of [this.#commands, this.#listener]) connection.on('error', (error) => this.#noteAway(error));
    this.#listener.on('ready', () => this.#subscribe());
    this.#listener.on('message', (_channel: string, text: string) => this.#receive(text));
  }

  /** Whether messages can be published. */
  get isReady(): boolean {
    return !this.#closed && this.#commands.status === 'ready' && this.#unconfirmedBytes < UNCONFIRMED_BYTES_MAX;
  }

  /** @param listener gets every message to this node */
  listen(listener: (message: NodeMessage) => void): void {
    this.#listeners.push(listener);
  }

  /** Never rejects. @returns how many listeners got it (0 or 1); undefined when that is unknown */
  async publish(meshId: string, message: NodeMessage): Promise<number | undefined> {
    const channel = nameOf(meshId);
    const text = signMessage(this.#secrets, channel, JSON.stringify(message));
    this.#unconfirmedBytes += text.length;
    const reached = await this.#replyTo(this.#commands.publish(channel, text));
    this.#unconfirmedBytes -= text.length;
    return reached;
  }

  /** Which of the nodes listen; undefined when Redis cannot be asked. */
  async listening(meshIds: string[]): Promise<Set<string> | undefined> {
    const counted = await this.#replyTo(this.#commands.pubsub('NUMSUB', ...meshIds.map(nameOf)));
    return counted && new Set(meshIds.filter((node) => Number(counted[counted.indexOf(nameOf(node)) + 1]) > 0));
  }

  /** Closes both connections after what was published has gone out. */
  async close(): Promise<void> {
    this.#listener.disconnect();
    const quits = this.isReady;
    this.#closed = true;
    if (quits) await this.#commands.quit().catch(() => this.#commands.disconnect());
    else this.#commands.disconnect();
  }

  /** Redis's reply to a command; undefined when there is none. */
  #replyTo<T>(command: Promise<T>): Promise<T | undefined> {
    return command.catch((error) => void this.#noteAway(error));
  }

  #receive(signed: string): void {
    const opened = openMessage(this.#secrets, this.#name, signed);
    if ('dropped' in opened) {
      this.#drop(opened.dropped);
      return;
    }
    const message = parseNodeMessage(opened.text);
    if (!message) this.#log.error({}, 'message of another node is not valid');
    else for (const listener of this.#listeners) listener(message);
  }

  #drop(reason: DroppedMessage): void {
    this.#dropped[reason] += 1;
    if (performance.now() - this.#dropLoggedAtMs < LOGGED_EVERY_MS) return;
    this.#dropLoggedAtMs = performance.now();
    this.#log.error({ reason, ...this.#dropped }, 'a message that no other node signed for this one is dropped');
  }

  #subscribe(): void {
    this.#listener.subscribe(this.#name).then(
      () => {
        if (this.#away) this.#log.info({}, 'other nodes can be reached again');
        this.#away = false;
      },
      (error) => this.#noteAway(error),
    );
  }

  /** Logs one line each time that Redis becomes unavailable. Tool calls end at their deadlines, nodes find queued messages by themselves. */
  #noteAway(error: unknown): void {
    if (this.#away || this.#closed) return;
    this.#away = true;
    this.#log.warn(
      { err: errorMessage(error) },
      'redis cannot be reached: tool calls and quick messages stay within their node',
    );
  }
}

/** Older nodes, which acknowledge nothing and might run a repeated call twice, listen on channels of another name. */
function nameOf(meshId: string): string {
  return `fleet:nodes:${meshId}`;
}
