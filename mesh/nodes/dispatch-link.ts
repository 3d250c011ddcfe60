import { LRUCache } from 'lru-cache';
import type { DatabaseClock } from '../../db/database-clock.js';
import type { DispatchEnd, Dispatches, DispatchRef, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { DispatchForwarder, Forwarded, ForwardedDispatches } from '../../messages/dispatch/forwarding.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { NodeMessage } from './node-message.js';
import type { RedisChannel } from './redis-channel.js';

/** In milliseconds. */
const TIMINGS = {
  /** Pause before a dispatch is forwarded again of which nothing was heard. */
  repeatMs: 250,
  /** The accepting process waits this long; a caller that still waits then follows the record. */
  answerWaitMs: 2_000,
  /** A dispatch that ends sooner is not confirmed before: its end confirms it. */
  takenMs: 100,
};
/** Larger payloads and ends do not go over Redis: the record has them. In characters of JSON. */
const CARRIED_MAX = 64 * 1024;
/** Dispatches that are remembered, so that one which comes twice is sent once. A repeat comes within two seconds. */
const KNOWN_MAX = 100_000;

type DispatchMessage = Extract<NodeMessage, { kind: 'dispatch' }>;
type Answer = Extract<NodeMessage, { kind: 'dispatch_taken' | 'dispatch_refused' | 'dispatch_ended' }>;

/** A dispatch that another node was asked to send. */
interface Waiting {
  open: OpenDispatch & { mesh_id: string };
  /** Its payload is small enough to go over Redis. */
  isCarried: boolean;
  /** When the accept transaction began, the earliest that it can have been on the database's clock: the node counts the lease from it. */
  acceptedAtMs: number;
  /** On `performance.now()`. */
  forwardedAtMs: number;
  /** Copies of which it is not known yet whether somebody listened. */
  copiesUnderWay: number;
  /** A copy may have reached the node. */
  mayHaveArrived: boolean;
  isTaken: boolean;
  settle(forwarded: Forwarded): void;
}

export interface DispatchLinkOptions {
  channel: Pick<RedisChannel, 'isReady' | 'listen' | 'publish'>;
  nodeId: string;
  dispatches: Pick<Dispatches, 'find'>;
  /** What the processes measure the lease by together. */
  clock: Pick<DatabaseClock, 'earliestMs' | 'latestMs'>;
  /** A living mesh node for hosted agents; null when none is known. */
  hostedNode: () => string | null;
  log: Pick<Logger, 'warn'>;
  timings?: Partial<typeof TIMINGS>;
}

/**
 * Forwards dispatches of the fast path between nodes over Redis. A dispatch is published until the node answers, at most two seconds; the
 * node sends it once. An answer that is lost costs time only: the end is on the record, and the workflow asks the node.
 */
export class DispatchLink implements DispatchForwarder {
  readonly #options: DispatchLinkOptions;
  readonly #waiting = new Map<string, Waiting>();
  /** What this node answers to the dispatches that came; `undecided` while it does not know yet whether it sends one. */
  readonly #known = new LRUCache<string, 'undecided' | 'dispatch_taken' | 'dispatch_refused'>({ max: KNOWN_MAX });
  readonly #repeats: NodeJS.Timeout;
  readonly #timings: typeof TIMINGS;
  #taker: ForwardedDispatches | undefined;

  constructor(options: DispatchLinkOptions) {
    this.#options = options;
    this.#timings = { ...TIMINGS, ...options.timings };
    options.channel.listen((message) => this.#receive(message));
    this.#repeats = setInterval(() => this.#repeat(), this.#timings.repeatMs).unref();
  }

  get isReachable(): boolean {
    return this.#options.channel.isReady && this.#options.clock.earliestMs() !== null;
  }

  hostedNode(): string | null {
    return this.#options.hostedNode();
  }

  forward(open: Waiting['open'], elapsedMs: number): Promise<Forwarded> {
    const now = this.#options.clock.earliestMs();
    if (now === null) return Promise.resolve('refused');
    return new Promise((settle) => {
      const times = { acceptedAtMs: now - elapsedMs, forwardedAtMs: performance.now() };
      const isCarried = JSON.stringify(open.payload).length <= CARRIED_MAX;
      const waiting = { open, ...times, isCarried, copiesUnderWay: 0, mayHaveArrived: false, isTaken: false, settle };
      this.#waiting.set(open.dispatch_id, waiting);
      void this.#publish(waiting);
    });
  }

  /** Sets what sends the dispatches that other processes forward to this node. */
  serve(taker: ForwardedDispatches): void {
    this.#taker = taker;
  }

  close(): void {
    clearInterval(this.#repeats);
    for (const waiting of this.#waiting.values()) this.#settle(waiting, 'unheard');
  }

  async #publish(waiting: Waiting): Promise<void> {
    const { open, acceptedAtMs } = waiting;
    const { tenant_id, message_id, dispatch_id, mesh_id } = open;
    waiting.copiesUnderWay += 1;
    const listeners = await this.#options.channel.publish(mesh_id, {
      kind: 'dispatch',
      from: this.#options.nodeId,
      ref: { tenant_id, message_id, dispatch_id },
      accepted_at_ms: acceptedAtMs,
      dispatch: waiting.isCarried ? open : null,
    });
    waiting.copiesUnderWay -= 1;
    waiting.mayHaveArrived ||= listeners !== 0;
    // A later copy may arrive at a node that listens again.
    if (!waiting.mayHaveArrived && waiting.copiesUnderWay === 0) this.#settle(waiting, 'refused');
  }

  #repeat(): void {
    const { repeatMs, answerWaitMs } = this.#timings;
    const now = performance.now();
    for (const waiting of this.#waiting.values()) {
      const waitedMs = now - waiting.forwardedAtMs;
      if (waitedMs >= answerWaitMs) this.#settle(waiting, waiting.isTaken ? 'taken' : 'unheard');
      else if (waitedMs >= repeatMs && !waiting.isTaken) void this.#publish(waiting);
    }
  }

  #settle(waiting: Waiting, forwarded: Forwarded): void {
    if (this.#waiting.delete(waiting.open.dispatch_id)) waiting.settle(forwarded);
  }

  #receive(message: NodeMessage): void {
    if (message.kind === 'dispatch') this.#take(message);
    if (!('dispatch_id' in message)) return;
    const waiting = this.#waiting.get(message.dispatch_id);
    if (waiting) this.#hear(waiting, message);
  }

  #hear(waiting: Waiting, answer: Answer): void {
    if (answer.kind === 'dispatch_taken') waiting.isTaken = true;
    else this.#settle(waiting, answer.kind === 'dispatch_ended' ? answer.end : 'refused');
  }

  /**
   * Sends a dispatch once, and answers each copy of it with what was decided. Who heard `dispatch_taken` asks no more, so that is not said before.
   */
  #take({ from, ref, accepted_at_ms, dispatch }: DispatchMessage): void {
    const { dispatch_id } = ref;
    const kind = this.#known.get(dispatch_id);
    if (kind === undefined) this.#known.set(dispatch_id, 'undecided');
    if (kind !== undefined && kind !== 'undecided') this.#answer(from, { kind, dispatch_id });
    if (kind !== undefined) return;
    if (dispatch) this.#send(from, dispatch, accepted_at_ms);
    else void this.#readAndSend(from, ref, accepted_at_ms);
  }

  async #readAndSend(from: string, ref: DispatchRef, acceptedAtMs: number): Promise<void> {
    const { dispatches, log } = this.#options;
    const open = await dispatches.find(ref).catch((error: unknown) => {
      log.warn({ err: errorMessage(error), dispatch_id: ref.dispatch_id }, 'forwarded dispatch could not be read');
      return null;
    });
    if (open) this.#send(from, open, acceptedAtMs);
    else this.#refuse(from, ref.dispatch_id);
  }

  #send(from: string, open: OpenDispatch, acceptedAtMs: number): void {
    const { dispatch_id } = open;
    // The way here counts: a copy may have waited in a buffer, or this process may have stood still.
    const now = this.#options.clock.latestMs();
    const ended = now === null ? null : this.#taker?.take(open, Math.max(0, now - acceptedAtMs));
    if (ended) this.#answerTo(from, dispatch_id, ended);
    else void this.#refuseSent(from, open);
  }

  async #refuseSent(from: string, open: OpenDispatch): Promise<void> {
    await this.#taker?.refusalKnown(open);
    this.#refuse(from, open.dispatch_id);
  }

  #answerTo(from: string, dispatch_id: string, ended: Promise<DispatchEnd>): void {
    this.#known.set(dispatch_id, 'dispatch_taken');
    const confirm = (): void => this.#answer(from, { kind: 'dispatch_taken', dispatch_id });
    const timer = setTimeout(confirm, this.#timings.takenMs).unref();
    void ended.then((end) => {
      clearTimeout(timer);
      this.#answer(from, { kind: 'dispatch_ended', dispatch_id, end: carried(end) });
    });
  }

  #refuse(from: string, dispatch_id: string): void {
    this.#known.set(dispatch_id, 'dispatch_refused');
    this.#answer(from, { kind: 'dispatch_refused', dispatch_id });
  }

  #answer(node: string, answer: Answer): void {
    void this.#options.channel.publish(node, answer);
  }
}

/** An end without its output where that is large. */
function carried(end: DispatchEnd): DispatchEnd {
  const isLarge = JSON.stringify(end.message?.artifacts ?? null).length > CARRIED_MAX;
  return isLarge ? { ...end, message: null } : end;
}
