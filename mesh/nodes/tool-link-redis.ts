import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../contracts/limits.js';
import { errorMessage } from '../../runtime/errors.js';
import {
  type CloseDeregistered,
  type Deliver,
  type DeregisteredAgent,
  type Forward,
  type ForwardedCall,
  NOBODY,
  type NodeLink,
  type PlacedCall,
} from '../../tools/tool-link.js';
import { type Outcome, refusal, resultOfThrown, unsent } from '../../tools/tool-result.js';
import { AcknowledgedSender } from './acknowledged-sender.js';
import { type AcknowledgedLetter, type NodeMessage, readNodeMessage } from './node-message.js';
import { RedisChannel, type RedisChannelOptions } from './redis-channel.js';

/** How often the nodes with which something is under way are looked after, in milliseconds. */
const WATCH_MS = 1_000;
/** A node that does not listen this many times in a row is gone; once may be its reconnect. */
const MISSES_MAX = 2;
/** A node that acknowledges nothing for this long is lost, in milliseconds. */
const SILENT_MS_MAX = 10_000;
/** Calls that are over and are remembered, so that a late repeat of one does not run it again. */
const OVER_REMEMBERED = 10_000;

/** Letters that are sent again at the same time, withdrawals included. */
const UNACKNOWLEDGED_MAX = 2 * LIMITS.toolCallsInFlightPerNode;

type Request = Extract<NodeMessage, { kind: 'call' | 'forward' }>;

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
  readonly #log: RedisChannelOptions['log'];
  readonly #channel: RedisChannel;
  readonly #sender: AcknowledgedSender;
  readonly #waiting = new Map<string, Waiting>();
  readonly #serving = new Map<string, Serving>();
  /** Calls of other nodes that ran here, or were withdrawn before they came. */
  readonly #over = new LRUCache<string, true>({ max: OVER_REMEMBERED });
  /** Times in a row that a node did not listen. */
  readonly #misses = new Map<string, number>();
  readonly #watch: NodeJS.Timeout;
  #deliver: Deliver | undefined;
  #forward: Forward | undefined;
  #closeDeregistered: CloseDeregistered | undefined;
  #watching = false;
  #closed = false;

  constructor(options: RedisChannelOptions) {
    this.#nodeId = options.nodeId;
    this.#log = options.log;
    this.#channel = new RedisChannel(options, (text) => this.#receive(text));
    this.#sender = new AcknowledgedSender((node, message) => this.#post(node, message));
    this.#watch = setInterval(() => void this.#lookAfterNodes(), WATCH_MS).unref();
  }

  async call(nodeId: string, call: PlacedCall, signal: AbortSignal): Promise<Outcome> {
    if (nodeId === this.#nodeId) return this.#deliver ? this.#deliver(call, signal) : NOBODY;
    return this.#ask(nodeId, { kind: 'call', from: this.#nodeId, call_id: call.call_id, call }, signal);
  }

  forward(nodeId: string, call: ForwardedCall, signal: AbortSignal): Promise<Outcome> {
    return this.#ask(nodeId, { kind: 'forward', from: this.#nodeId, call_id: call.call_id, call }, signal);
  }

  deregistered(nodeId: string, agent: DeregisteredAgent): void {
    if (nodeId === this.#nodeId) this.#closeDeregistered?.(agent);
    else void this.#post(nodeId, { kind: 'deregistered', agent });
  }

  async #ask(nodeId: string, message: Request, signal: AbortSignal): Promise<Outcome> {
    const { call_id } = message;
    if (!this.#channel.isReady) return NOBODY;
    if (signal.aborted) return unsent('CANCELED', 'The call was withdrawn.');
    const over = new AbortController();
    let settle: (outcome: Outcome) => void = () => undefined;
    const settled = new Promise<Outcome>((resolve) => {
      settle = resolve;
    });
    const withdraw = (): void => {
      settle({ sent: true, result: refusal('CANCELED', 'The call was withdrawn.') });
      this.#withdraw(nodeId, call_id);
    };
    this.#waiting.set(call_id, { node: nodeId, settle });
    signal.addEventListener('abort', withdraw, { once: true });
    void this.#sender
      .send(nodeId, message, { over: over.signal, giveUpMs: SILENT_MS_MAX, insist: false })
      .then((sent) => {
        if (sent === 'acknowledged' || over.signal.aborted) return;
        settle(sent === 'nobody' ? NOBODY : LOST);
        if (sent === 'unknown') this.#withdraw(nodeId, call_id);
      });
    try {
      return await settled;
    } finally {
      over.abort();
      signal.removeEventListener('abort', withdraw);
      this.#waiting.delete(call_id);
    }
  }

  #withdraw(nodeId: string, call_id: string): void {
    const message = { kind: 'withdraw', from: this.#nodeId, call_id } as const;
    // Whoever withdraws may call again: beyond the bound a withdrawal is sent once, and the callee's own deadline ends the call.
    const giveUpMs = this.#sender.size < UNACKNOWLEDGED_MAX ? SILENT_MS_MAX : 0;
    void this.#sender.send(nodeId, message, { giveUpMs, insist: true });
  }

  serve(deliver: Deliver): void {
    this.#deliver = deliver;
  }

  serveForwarded(forward: Forward): void {
    this.#forward = forward;
  }

  serveDeregistered(close: CloseDeregistered): void {
    this.#closeDeregistered = close;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sender.close();
    clearInterval(this.#watch);
    for (const { withdrawn } of this.#serving.values()) withdrawn.abort();
    for (const { settle } of this.#waiting.values()) settle(LOST);
    await this.#channel.close();
  }

  #post(nodeId: string, message: NodeMessage): Promise<number | undefined> {
    return this.#channel.publish(nodeId, JSON.stringify(message));
  }

  #receive(text: string): void {
    const message = readNodeMessage(text);
    if (!message) this.#log.error({}, 'message of another node does not fit');
    else if (message.kind === 'acknowledged') this.#sender.acknowledged(message.of, message.call_id);
    else if (message.kind === 'deregistered') this.#closeDeregistered?.(message.agent);
    else this.#take(message);
  }

  /** Acknowledges a message, however often it comes, and acts on it once. */
  #take(message: AcknowledgedLetter): void {
    const { kind, from, call_id } = message;
    void this.#post(from, { kind: 'acknowledged', of: kind, call_id });
    if (kind === 'outcome') this.#waiting.get(call_id)?.settle({ sent: message.sent, result: message.result });
    else if (kind === 'withdraw') this.#withdrawn(call_id);
    else if (!this.#serving.has(call_id) && !this.#over.get(call_id)) void this.#serve(message);
  }

  #withdrawn(call_id: string): void {
    this.#over.set(call_id, true);
    this.#serving.get(call_id)?.withdrawn.abort();
  }

  async #serve(message: Request): Promise<void> {
    const { from, call_id } = message;
    const withdrawn = new AbortController();
    this.#serving.set(call_id, { node: from, withdrawn });
    const outcome = await this.#work(message, withdrawn.signal);
    const answer = { kind: 'outcome', from: this.#nodeId, call_id, ...outcome } as const;
    await this.#sender.send(from, answer, { over: withdrawn.signal, insist: true });
    this.#over.set(call_id, true);
    this.#serving.delete(call_id);
  }

  async #work(message: Request, signal: AbortSignal): Promise<Outcome> {
    if (this.#closed) return NOBODY;
    try {
      const working =
        message.kind === 'call' ? this.#deliver?.(message.call, signal) : this.#forward?.(message.call, signal);
      return (await working) ?? NOBODY;
    } catch (error) {
      this.#log.warn(
        { err: errorMessage(error), call_id: message.call.call_id },
        'tool call of another node failed here',
      );
      return { sent: true, result: resultOfThrown(error) };
    }
  }

  /** Ends what is under way with nodes that do not listen any more: what they had is lost, what they wanted is wanted no more. */
  async #lookAfterNodes(): Promise<void> {
    const nodes = new Set([...this.#waiting.values(), ...this.#serving.values()].map(({ node }) => node));
    for (const node of this.#misses.keys()) if (!nodes.has(node)) this.#misses.delete(node);
    if (this.#watching || nodes.size === 0 || !this.#channel.isReady) return;
    this.#watching = true;
    const listening = await this.#channel.listening([...nodes]);
    this.#watching = false;
    if (listening) for (const node of nodes) this.#note(node, listening.has(node));
  }

  #note(node: string, listens: boolean): void {
    const misses = listens ? 0 : (this.#misses.get(node) ?? 0) + 1;
    this.#misses.set(node, misses);
    if (misses < MISSES_MAX) return;
    for (const waiting of this.#waiting.values()) if (waiting.node === node) waiting.settle(LOST);
    for (const serving of this.#serving.values()) if (serving.node === node) serving.withdrawn.abort();
  }
}

/**
 * The link of one process among several: each node listens on a channel of its own. A call is published there, and its outcome on the
 * caller's, until the other acknowledges it; a call that comes again is not made again. A node that no longer listens is noticed within
 * three seconds.
 */
export function createRedisLink(options: RedisChannelOptions): NodeLink {
  return new RedisLink(options);
}
