import type { AcknowledgedMessage } from './node-message.js';

/** Pause before a message without an acknowledgement is sent again, in milliseconds. */
const REPEAT_MS = 250;

/** `acknowledged`: the node has the message. `unreachable`: it reached no node. `unknown`: it may have, without an acknowledgement. */
export type SendResult = 'acknowledged' | 'unreachable' | 'unknown';

/** When a message without an acknowledgement is no longer sent. */
export interface SendLimits {
  /** Aborted when the message is no longer needed; it is sent at least once. */
  signal?: AbortSignal;
  /** Absent: only `signal` ends it. */
  giveUpMs?: number;
  /** Sends it again while no node listens at the channel too, as during a reconnect. */
  retryUnreachable: boolean;
}

interface Sending {
  acknowledged: boolean;
  /** Ends the pause between two attempts. */
  wake: () => void;
}

/** Sends messages at least once: each again and again until the other node acknowledges it. */
export class AcknowledgedSender {
  readonly #publish: (node: string, message: AcknowledgedMessage) => Promise<number | undefined>;
  readonly #sendings = new Map<string, Sending>();
  #closed = false;

  /** @param publish resolves with the number of listeners at the node's channel, or undefined when that is unknown. Never rejects */
  constructor(publish: (node: string, message: AcknowledgedMessage) => Promise<number | undefined>) {
    this.#publish = publish;
  }

  /** How many messages are not acknowledged yet. */
  get size(): number {
    return this.#sendings.size;
  }

  /** Never rejects. */
  async send(node: string, message: AcknowledgedMessage, limits: SendLimits): Promise<SendResult> {
    const name = nameOf(message.kind, message.call_id);
    const sending: Sending = { acknowledged: false, wake: () => undefined };
    const wake = (): void => sending.wake();
    this.#sendings.set(name, sending);
    limits.signal?.addEventListener('abort', wake);
    try {
      return await this.#repeat(node, message, limits, sending);
    } finally {
      limits.signal?.removeEventListener('abort', wake);
      this.#sendings.delete(name);
    }
  }

  /** The other node has the message. */
  acknowledged(of: AcknowledgedMessage['kind'], callId: string): void {
    const sending = this.#sendings.get(nameOf(of, callId));
    if (!sending) return;
    sending.acknowledged = true;
    sending.wake();
  }

  /** Sends nothing again. */
  close(): void {
    this.#closed = true;
    for (const { wake } of this.#sendings.values()) wake();
  }

  async #repeat(
    node: string,
    message: AcknowledgedMessage,
    { signal, giveUpMs = Number.POSITIVE_INFINITY, retryUnreachable }: SendLimits,
    sending: Sending,
  ): Promise<SendResult> {
    const endsAtMs = performance.now() + giveUpMs;
    const isOver = (): boolean => this.#closed || signal?.aborted === true || performance.now() >= endsAtMs;
    let mayHaveArrived = false;
    for (;;) {
      mayHaveArrived = (await this.#publish(node, message)) !== 0 || mayHaveArrived;
      if (sending.acknowledged) return 'acknowledged';
      if (!mayHaveArrived && !retryUnreachable) return 'unreachable';
      if (!isOver()) await pause(sending);
      if (sending.acknowledged) return 'acknowledged';
      if (isOver()) return mayHaveArrived ? 'unknown' : 'unreachable';
    }
  }
}

function pause(sending: Sending): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, REPEAT_MS).unref();
    sending.wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

function nameOf(kind: AcknowledgedMessage['kind'], callId: string): string {
  return `${kind} ${callId}`;
}
