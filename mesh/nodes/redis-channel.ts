import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

const RETRY_MS_MAX = 1_000;

export interface RedisChannelOptions {
  url: string;
  nodeId: string;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/** Listens on the node's own Redis channel, and publishes to those of other nodes. */
export class RedisChannel {
  readonly #name: string;
  readonly #log: RedisChannelOptions['log'];
  readonly #commands: Redis;
  readonly #listener: Redis;
  #away = false;
  #closed = false;

  /** @param onText called for each message */
  constructor({ url, nodeId, log }: RedisChannelOptions, onText: (text: string) => void) {
    this.#name = nameOf(nodeId);
    this.#log = log;
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
    this.#listener.on('ready', () => this.#listen());
    this.#listener.on('message', (_channel: string, text: string) => onText(text));
  }

  /** Whether messages can be published. */
  get isReady(): boolean {
    return !this.#closed && this.#commands.status === 'ready';
  }

  /** Never rejects. @returns how many listeners got it (0 or 1); undefined when that is unknown */
  publish(nodeId: string, text: string): Promise<number | undefined> {
    return this.#replyTo(this.#commands.publish(nameOf(nodeId), text));
  }

  /** Which of the nodes listen; undefined when Redis cannot be asked. */
  async listening(nodeIds: string[]): Promise<Set<string> | undefined> {
    const counted = await this.#replyTo(this.#commands.pubsub('NUMSUB', ...nodeIds.map(nameOf)));
    return counted && new Set(nodeIds.filter((node) => Number(counted[counted.indexOf(nameOf(node)) + 1]) > 0));
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

  #listen(): void {
    this.#listener.subscribe(this.#name).then(
      () => {
        if (this.#away) this.#log.info({}, 'tool calls reach other nodes again');
        this.#away = false;
      },
      (error) => this.#noteAway(error),
    );
  }

  /** Logs one line each time that Redis becomes unavailable. Calls end at their deadlines at the latest. */
  #noteAway(error: unknown): void {
    if (this.#away || this.#closed) return;
    this.#away = true;
    this.#log.warn({ err: errorMessage(error) }, 'redis cannot be reached: tool calls stay within their node');
  }
}

/** Older nodes, which acknowledge nothing and might run a repeated call twice, listen on channels of another name. */
function nameOf(nodeId: string): string {
  return `fleet:nodes:${nodeId}`;
}
