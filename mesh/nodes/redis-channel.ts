import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

const RETRY_MS_MAX = 1_000;

export interface RedisChannelOptions {
  url: string;
  nodeId: string;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/** A node's own channel in Redis, on which it listens, and the way to those of other nodes. */
export class RedisChannel {
  readonly #name: string;
  readonly #log: RedisChannelOptions['log'];
  readonly #commands: Redis;
  readonly #listener: Redis;
  #away = false;
  #closed = false;

  /** @param onText called for each message that came */
  constructor({ url, nodeId, log }: RedisChannelOptions, onText: (text: string) => void) {
    this.#name = nameOf(nodeId);
    this.#log = log;
    const common: RedisOptions = {
      maxRetriesPerRequest: 1,
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

  /** Whether messages go out now. */
  get isReady(): boolean {
    return !this.#closed && this.#commands.status === 'ready';
  }

  /** Never rejects. @returns how many listen there: none, or the node's one; undefined when the message may or may not have gone out */
  async publish(nodeId: string, text: string): Promise<number | undefined> {
    try {
      return await this.#commands.publish(nameOf(nodeId), text);
    } catch (error) {
      this.#noteAway(error);
      return undefined;
    }
  }

  /** Which of the nodes listen; undefined when Redis cannot say. */
  async listening(nodeIds: string[]): Promise<Set<string> | undefined> {
    try {
      const counted = await this.#commands.pubsub('NUMSUB', ...nodeIds.map(nameOf));
      return new Set(nodeIds.filter((node) => Number(counted[counted.indexOf(nameOf(node)) + 1]) > 0));
    } catch (error) {
      this.#noteAway(error);
      return undefined;
    }
  }

  /** Ends both connections; what was published before goes out first. */
  async close(): Promise<void> {
    this.#listener.disconnect();
    const quits = this.isReady;
    this.#closed = true;
    if (quits) await this.#commands.quit().catch(() => this.#commands.disconnect());
    else this.#commands.disconnect();
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

  /** One line for each time that Redis goes away; calls end by their deadlines at the latest. */
  #noteAway(error: unknown): void {
    if (this.#away || this.#closed) return;
    this.#away = true;
    this.#log.warn({ err: errorMessage(error) }, 'redis cannot be reached: tool calls stay within their node');
  }
}

/** Not the name that nodes listened at which acknowledged nothing: a call that is repeated to one of those might run twice. */
function nameOf(nodeId: string): string {
  return `fleet:nodes:${nodeId}`;
}
