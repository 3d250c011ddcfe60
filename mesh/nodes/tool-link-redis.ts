import { addAbortListener } from 'node:events';
import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../contracts/limits.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import {
  type DeregisteredAgent,
  type ForwardedCall,
  NODE_UNREACHABLE,
  type NodeHandlers,
  type NodeLink,
  type RoutedCall,
} from '../../tools/tool-link.js';
import { type Outcome, refusal, resultOfError, unsent } from '../../tools/tool-result.js';
import { AcknowledgedSender } from './acknowledged-sender.js';
import type { AcknowledgedMessage, NodeMessage } from './node-message.js';
import type { RedisChannel } from './redis-channel.js';

/** How often the nodes of open calls are checked, in milliseconds. */
const CHECK_MS = 1_000;
/** A node that does not listen in this many checks in a row is gone; once may be its reconnect. */
const MISSES_MAX = 2;
/** A node that acknowledges nothing for this long is gone. */
const SILENT_MS_MAX = 10_000;
/** Ended calls that are remembered, so that a late repeat does not run again. */
const ENDED_MAX = 10_000;

/** Messages without an acknowledgement, withdrawals included. */
const UNACKNOWLEDGED_MAX = 2 * LIMITS.toolCallsInFlightPerNode;

type Request = Extract<NodeMessage, { kind: 'call' | 'forward' }>;

/** The outcome of a call whose node was lost: nobody knows whether the tool has run. */
const LOST: Outcome = {
  sent: true,
  result: refusal('TARGET_UNAVAILABLE', 'The node that holds the agent was lost while the call was there.', false),
};

interface RedisLinkOptions {
  channel: RedisChannel;
  meshId: string;
  log: Pick<Logger, 'warn'>;
}

/**
 * The link between processes, over Redis. A call is published on the channel of the agent's node, and its outcome on the caller's channel,
 * until the other node acknowledges it. A repeated call does not run again. A node that no longer listens is noticed within three seconds.
 */
export class RedisLink implements NodeLink {
  readonly #meshId: string;
  readonly #log: RedisLinkOptions['log'];
  readonly #channel: RedisChannel;
  readonly #sender: AcknowledgedSender;
  /** Calls that another node was asked to make. */
  readonly #waiting = new Map<string, { node: string; settle(outcome: Outcome): void }>();
  /** Calls that run here because another node asked. */
  readonly #serving = new Map<string, { node: string; withdrawn: AbortController }>();
  /** Calls of other nodes that ran here, or were withdrawn before they came. */
  readonly #ended = new LRUCache<string, true>({ max: ENDED_MAX });
  /** Checks in a row in which a node did not listen. */
  readonly #misses = new Map<string, number>();
  readonly #checks: NodeJS.Timeout;
  #handlers: Partial<NodeHandlers> = {};
  #checking = false;
  #closed = false;

  constructor({ channel, meshId, log }: RedisLinkOptions) {
    this.#meshId = meshId;
    this.#log = log;
    this.#channel = channel;
    channel.listen((message) => this.#receive(message));
    this.#sender = new AcknowledgedSender((node, message) => channel.publish(node, message));
    this.#checks = setInterval(() => void this.#checkNodes(), CHECK_MS).unref();
  }

  async call(meshId: string, call: RoutedCall, signal: AbortSignal): Promise<Outcome> {
    if (meshId === this.#meshId) return (await this.#handlers.call?.(call, signal)) ?? NODE_UNREACHABLE;
    return this.#ask(meshId, { kind: 'call', from: this.#meshId, call_id: call.call_id, call }, signal);
  }

  forward(meshId: string, call: ForwardedCall, signal: AbortSignal): Promise<Outcome> {
    return this.#ask(meshId, { kind: 'forward', from: this.#meshId, call_id: call.call_id, call }, signal);
  }

  deregistered(meshId: string, agent: DeregisteredAgent): void {
    if (meshId === this.#meshId) this.#handlers.deregistered?.(agent);
    else void this.#channel.publish(meshId, { kind: 'deregistered', agent });
  }

  async #ask(meshId: string, message: Request, signal: AbortSignal): Promise<Outcome> {
    const { call_id } = message;
    if (!this.#channel.isReady) return NODE_UNREACHABLE;
    if (signal.aborted) return unsent('CANCELED', 'The call was withdrawn.');
    const done = new AbortController();
    const settled = new Promise<Outcome>((settle) => this.#waiting.set(call_id, { node: meshId, settle }));
    const end = (outcome: Outcome): void => this.#waiting.get(call_id)?.settle(outcome);
    using _listener = addAbortListener(signal, () => {
      end({ sent: true, result: refusal('CANCELED', 'The call was withdrawn.') });
      this.#withdraw(meshId, call_id);
    });
    const limits = { signal: done.signal, giveUpMs: SILENT_MS_MAX, retryUnreachable: false };
    void this.#sender.send(meshId, message, limits).then((sent) => {
      if (sent === 'acknowledged' || done.signal.aborted) return;
      end(sent === 'unreachable' ? NODE_UNREACHABLE : LOST);
      if (sent === 'unknown') this.#withdraw(meshId, call_id);
    });
    try {
      return await settled;
    } finally {
      done.abort();
      this.#waiting.delete(call_id);
    }
  }

  #withdraw(meshId: string, call_id: string): void {
    const message = { kind: 'withdraw', from: this.#meshId, call_id } as const;
    // Beyond the limit a withdrawal is sent once: the caller may call again meanwhile, and the callee's deadline ends the call.
    const giveUpMs = this.#sender.size < UNACKNOWLEDGED_MAX ? SILENT_MS_MAX : 0;
    void this.#sender.send(meshId, message, { giveUpMs, retryUnreachable: true });
  }

  serve(handlers: Partial<NodeHandlers>): void {
    this.#handlers = { ...this.#handlers, ...handlers };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sender.close();
    clearInterval(this.#checks);
    for (const { withdrawn } of this.#serving.values()) withdrawn.abort();
    for (const { settle } of this.#waiting.values()) settle(LOST);
  }

  #receive(message: NodeMessage): void {
    if (message.kind === 'acknowledged') this.#sender.acknowledged(message.of, message.call_id);
    else if (message.kind === 'deregistered') this.#handlers.deregistered?.(message.agent);
    else if ('call_id' in message) this.#handle(message);
  }

  /** Acknowledges each copy of a message, and handles it once. */
  #handle(message: AcknowledgedMessage): void {
    const { kind, from, call_id } = message;
    void this.#channel.publish(from, { kind: 'acknowledged', of: kind, call_id });
    if (kind === 'outcome') this.#waiting.get(call_id)?.settle({ sent: message.sent, result: message.result });
    else if (kind === 'withdraw') this.#abort(call_id);
    else if (!this.#serving.has(call_id) && !this.#ended.get(call_id)) void this.#serve(message);
  }

  #abort(call_id: string): void {
    this.#ended.set(call_id, true);
    this.#serving.get(call_id)?.withdrawn.abort();
  }

  async #serve(message: Request): Promise<void> {
    const { from, call_id } = message;
    const withdrawn = new AbortController();
    this.#serving.set(call_id, { node: from, withdrawn });
    const outcome = await this.#work(message, withdrawn.signal);
    const answer = { kind: 'outcome', from: this.#meshId, call_id, ...outcome } as const;
    await this.#sender.send(from, answer, { signal: withdrawn.signal, retryUnreachable: true });
    this.#ended.set(call_id, true);
    this.#serving.delete(call_id);
  }

  async #work(message: Request, signal: AbortSignal): Promise<Outcome> {
    if (this.#closed) return NODE_UNREACHABLE;
    try {
      const { call, forward } = this.#handlers;
      const working = message.kind === 'call' ? call?.(message.call, signal) : forward?.(message.call, signal);
      return (await working) ?? NODE_UNREACHABLE;
    } catch (error) {
      const { call_id } = message;
      this.#log.warn({ err: errorMessage(error), call_id }, 'tool call of another node failed here');
      return { sent: true, result: resultOfError(error) };
    }
  }

  /** Ends the calls of nodes that no longer listen: calls sent to them are lost, calls that came from them are withdrawn. */
  async #checkNodes(): Promise<void> {
    const nodes = new Set([...this.#waiting.values(), ...this.#serving.values()].map(({ node }) => node));
    for (const node of this.#misses.keys()) if (!nodes.has(node)) this.#misses.delete(node);
    if (this.#checking || nodes.size === 0 || !this.#channel.isReady) return;
    this.#checking = true;
    const listening = await this.#channel.listening([...nodes]);
    this.#checking = false;
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
