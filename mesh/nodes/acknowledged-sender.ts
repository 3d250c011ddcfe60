import { addAbortListener } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcknowledgedMessage } from './node-message.js';

/** Pause before a message without an acknowledgement is sent again, in milliseconds. */
const REPEAT_MS = 250;
const ACKNOWLEDGED = 'acknowledged';

/** `acknowledged`: the node has the message. `unreachable`: it reached no node. `unknown`: it may have, but no acknowledgement came. */
export type SendResult = 'acknowledged' | 'unreachable' | 'unknown';

/** When a message without an acknowledgement is no longer sent. */
export interface SendLimits {
  /** Aborted when the message is no longer needed; it is sent at least once. */
  signal?: AbortSignal;
  /** Absent: only `signal` ends it. */
  giveUpMs?: number;
  /** Whether to go on sending while no node listens at the channel, as during its reconnect. */
  retryUnreachable: boolean;
}

type Publish = (node: string, message: AcknowledgedMessage) => Promise<number | undefined>;

/** Sends messages at least once: each again and again until the other node acknowledges it. */
export class AcknowledgedSender {
  readonly #publish: Publish;
  /** The messages that are being sent; aborting one ends it. */
  readonly #sendings = new Map<string, AbortController>();
  #closed = false;

  /** @param publish resolves with the number of listeners at the node's channel, or undefined when that is unknown. Never rejects */
  constructor(publish: Publish) {
    this.#publish = publish;
  }

  /** How many messages are not acknowledged yet. */
  get size(): number {
    return this.#sendings.size;
  }

  /** Never rejects. */
  async send(node: string, message: AcknowledgedMessage, limits: SendLimits): Promise<SendResult> {
    const { signal, giveUpMs = Number.POSITIVE_INFINITY, retryUnreachable } = limits;
    const name = nameOf(message.kind, message.call_id);
    const ended = new AbortController();
    this.#sendings.set(name, ended);
    using _listener = signal && addAbortListener(signal, () => ended.abort());
    const endsAtMs = performance.now() + giveUpMs;
    const isOver = (): boolean => this.#closed || ended.signal.aborted || performance.now() >= endsAtMs;
    let mayHaveArrived = false;
    try {
      for (;;) {
        mayHaveArrived = (await this.#publish(node, message)) !== 0 || mayHaveArrived;
        if (!mayHaveArrived && !retryUnreachable) return 'unreachable';
        if (!isOver()) await sleep(REPEAT_MS, undefined, { signal: ended.signal, ref: false }).catch(() => undefined);
        if (ended.signal.reason === ACKNOWLEDGED) return ACKNOWLEDGED;
        if (isOver()) return mayHaveArrived ? 'unknown' : 'unreachable';
      }
    } finally {
      this.#sendings.delete(name);
    }
  }

  /** Called when the acknowledgement of the other node came. */
  acknowledged(of: AcknowledgedMessage['kind'], callId: string): void {
    this.#sendings.get(nameOf(of, callId))?.abort(ACKNOWLEDGED);
  }

  /** Ends all sending; pending calls of `send` resolve at once. */
  close(): void {
    this.#closed = true;
    for (const ended of this.#sendings.values()) ended.abort();
  }
}

function nameOf(kind: AcknowledgedMessage['kind'], callId: string): string {
  return `${kind} ${callId}`;
}
