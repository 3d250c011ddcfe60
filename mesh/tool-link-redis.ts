import { setTimeout as delay } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { type Letter, readLetter } from './tool-letters.js';
import { type Deliver, type Forward, type ForwardedCall, NOBODY, type NodeLink, type PlacedCall } from './tool-link.js';
import { type Outcome, refusal, resultOfThrown, unsent } from './tool-result.js';

const RETRY_MS_MAX = 1_000;
/** How often the nodes with which something is under way are looked after, in milliseconds. */
const WATCH_MS = 1_000;
/** A node that does not listen this many times in a row is gone; once may be its reconnect. */
const MISSES_MAX = 2;
/** How often an outcome that nobody took is sent again, in milliseconds. */
const REPEAT_MS = 250;

type Request = Extract<Letter, { kind: 'call' | 'forward' }>;

interface RedisLinkOptions {
  url: string;
  nodeId: string;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

interface Waiting {
  node: string;
  settle(outcome: Outcome): void;
}

interface Serving {
  /** Who asked. */
  node: string;
  withdrawn: AbortController;
}

/** Maybe done, maybe not: nobody is left to say. */
const LOST: Outcome = {
  sent: true,
  result: refusal('TARGET_UNAVAILABLE', 'The node that holds the agent was lost while the call was there.', false),
};

class RedisLink implements NodeLink {
  readonly #nodeId: string;
  readonly #log: RedisLinkOptions['log'];
  readonly #commands: Redis;
  readonly #letterbox: Redis;
  readonly #waiting = new Map<string, Waiting>();
  readonly #serving = new Map<string, Serving>();
  /** Times in a row that a node did not listen. */
  readonly #misses = new Map<string, number>();
  readonly #watch: NodeJS.Timeout;
  #deliver: Deliver | undefined;
  #forward: Forward | undefined;
  #watching = false;
  #away = false;
  #closed = false;

  constructor({ url, nodeId, log }: RedisLinkOptions) {
    this.#nodeId = nodeId;
    this.#log = log;
    const common: RedisOptions = {
      maxRetriesPerRequest: 1,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      retryStrategy: (attempt) => Math.min(attempt * 50, RETRY_MS_MAX),
    };
    this.#commands = new Redis(url, common);
    this.#letterbox = new Redis(url, common);
    for (const connection of [this.#commands, this.#letterbox])
      connection.on('error', (error) => this.#noteAway(error));
    this.#letterbox.on('ready', () => this.#listen());
    this.#letterbox.on('message', (_channel: string, text: string) => this.#receive(text));
    this.#watch = setInterval(() => void this.#lookAfterNodes(), WATCH_MS).unref();
  }

  async call(nodeId: string, call: PlacedCall, signal: AbortSignal): Promise<Outcome> {
    if (nodeId === this.#nodeId) return this.#deliver ? this.#deliver(call, signal) : NOBODY;
    return this.#ask(nodeId, { kind: 'call', from: this.#nodeId, call }, signal);
  }

  forward(nodeId: string, call: ForwardedCall, signal: AbortSignal): Promise<Outcome> {
    return this.#ask(nodeId, { kind: 'forward', from: this.#nodeId, call }, signal);
  }

  async #ask(nodeId: string, letter: Request, signal: AbortSignal): Promise<Outcome> {
    const { call_id } = letter.call;
    if (this.#closed || this.#commands.status !== 'ready') return NOBODY;
    if (signal.aborted) return unsent('CANCELED', 'The call was withdrawn.');
    let settle: (outcome: Outcome) => void = () => undefined;
    const settled = new Promise<Outcome>((resolve) => {
      settle = resolve;
    });
    const withdraw = (): void => {
      this.#post(nodeId, { kind: 'withdraw', call_id }).catch((error) => this.#noteAway(error));
      settle({ sent: true, result: refusal('CANCELED', 'The call was withdrawn.') });
    };
    this.#waiting.set(call_id, { node: nodeId, settle });
    signal.addEventListener('abort', withdraw, { once: true });
    this.#post(nodeId, letter).then(
      (listeners) => listeners === 0 && settle(NOBODY),
      (error) => {
        this.#noteAway(error);
        settle(LOST); // it may have gone out
      },
    );
    try {
      return await settled;
    } finally {
      signal.removeEventListener('abort', withdraw);
      this.#waiting.delete(call_id);
    }
  }

  serve(deliver: Deliver): void {
    this.#deliver = deliver;
  }

  serveForwarded(forward: Forward): void {
    this.#forward = forward;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    for (const { withdrawn } of this.#serving.values()) withdrawn.abort();
    for (const { settle } of this.#waiting.values()) settle(LOST);
    this.#letterbox.disconnect();
    // The last outcomes go out first, where there is somebody to take them.
    if (this.#commands.status === 'ready') await this.#commands.quit().catch((error) => this.#noteAway(error));
    else this.#commands.disconnect();
  }

  /** @returns how many connections listen there: none, or the node's one */
  #post(nodeId: string, letter: Letter): Promise<number> {
    return this.#commands.publish(channelOf(nodeId), JSON.stringify(letter));
  }

  #listen(): void {
    this.#letterbox.subscribe(channelOf(this.#nodeId)).then(
      () => {
        if (this.#away) this.#log.info({}, 'tool calls reach other nodes again');
        this.#away = false;
      },
      (error) => this.#noteAway(error),
    );
  }

  #receive(text: string): void {
    const letter = readLetter(text);
    if (!letter) this.#log.error({}, 'letter of another node does not fit');
    else if (letter.kind === 'call' || letter.kind === 'forward') void this.#serve(letter);
    else if (letter.kind === 'withdraw') this.#serving.get(letter.call_id)?.withdrawn.abort();
    else this.#waiting.get(letter.call_id)?.settle({ sent: letter.sent, result: letter.result });
  }

  async #serve(letter: Request): Promise<void> {
    const { from } = letter;
    const { call_id } = letter.call;
    if (this.#serving.has(call_id)) return;
    const withdrawn = new AbortController();
    this.#serving.set(call_id, { node: from, withdrawn });
    const outcome = await this.#work(letter, withdrawn.signal);
    await this.#bring(from, { kind: 'outcome', call_id, ...outcome }, withdrawn.signal);
    this.#serving.delete(call_id);
  }

  /** Brings an outcome back. A node whose connection to Redis is being opened again hears nothing: it is told until it listens. */
  async #bring(node: string, outcome: Letter, unwanted: AbortSignal): Promise<void> {
    for (;;) {
      const listeners = await this.#post(node, outcome).catch((error) => {
        this.#noteAway(error);
        return 0;
      });
      if (listeners > 0 || this.#closed || unwanted.aborted) return;
      await delay(REPEAT_MS, undefined, { ref: false });
    }
  }

  async #work(letter: Request, signal: AbortSignal): Promise<Outcome> {
    if (this.#closed) return NOBODY;
    try {
      const working =
        letter.kind === 'call' ? this.#deliver?.(letter.call, signal) : this.#forward?.(letter.call, signal);
      return (await working) ?? NOBODY;
    } catch (error) {
      this.#log.warn(
        { err: errorMessage(error), call_id: letter.call.call_id },
        'tool call of another node failed here',
      );
      return { sent: true, result: resultOfThrown(error) };
    }
  }

  /** Ends what is under way with nodes that do not listen any more: what they had is lost, what they wanted is wanted no more. */
  async #lookAfterNodes(): Promise<void> {
    const nodes = new Set([...this.#waiting.values(), ...this.#serving.values()].map(({ node }) => node));
    for (const node of this.#misses.keys()) if (!nodes.has(node)) this.#misses.delete(node);
    if (this.#watching || nodes.size === 0 || this.#commands.status !== 'ready') return;
    this.#watching = true;
    try {
      const counted = await this.#commands.pubsub('NUMSUB', ...[...nodes].map(channelOf));
      for (const node of nodes) this.#note(node, Number(counted[counted.indexOf(channelOf(node)) + 1]) > 0);
    } catch (error) {
      this.#noteAway(error);
    } finally {
      this.#watching = false;
    }
  }

  #note(node: string, listens: boolean): void {
    const misses = listens ? 0 : (this.#misses.get(node) ?? 0) + 1;
    this.#misses.set(node, misses);
    if (misses < MISSES_MAX) return;
    for (const waiting of this.#waiting.values()) if (waiting.node === node) waiting.settle(LOST);
    for (const serving of this.#serving.values()) if (serving.node === node) serving.withdrawn.abort();
  }

  /** One line for each time that Redis goes away; calls end by their deadlines at the latest. */
  #noteAway(error: unknown): void {
    if (this.#away || this.#closed) return;
    this.#away = true;
    this.#log.warn({ err: errorMessage(error) }, 'redis cannot be reached: tool calls stay within their node');
  }
}

function channelOf(nodeId: string): string {
  return `fleet:tools:${nodeId}`;
}

/**
 * The link of one process among several: each node listens on a channel of its own, a call is published there at most once, and its
 * outcome on the caller's. A node that no longer listens is noticed within three seconds.
 */
export function createRedisLink(options: RedisLinkOptions): NodeLink {
  return new RedisLink(options);
}
