import type { AcknowledgedLetter } from './node-message.js';

/** How often a message that nobody acknowledged is sent again, in milliseconds. */
const REPEAT_MS = 250;

/** `acknowledged`: the node has it. `nobody`: it reached no node. `unknown`: it may have, but no acknowledgement came. */
export type Sent = 'acknowledged' | 'nobody' | 'unknown';

/** When the sending of a message ends although nobody acknowledged it. */
export interface SendingLimits {
  /** Aborted when the message is not wanted any more; it is sent once at least. */
  over?: AbortSignal;
  /** In milliseconds; absent: only `over` ends it. */
  giveUpMs?: number;
  /** Sends it again also while nobody listens at the node's channel, as during its reconnect. */
  insist: boolean;
}

interface Sending {
  acknowledged: boolean;
  /** Ends the pause between two tries. */
  wake: () => void;
}

/** Sends letters at least once: each again and again until the other node acknowledges it. */
export class AcknowledgedSender {
  readonly #publish: (node: string, message: AcknowledgedLetter) => Promise<number | undefined>;
  readonly #sendings = new Map<string, Sending>();
  #closed = false;

  /** @param publish gives how many listen at the node's channel; undefined when that is not known. Never rejects */
  constructor(publish: (node: string, message: AcknowledgedLetter) => Promise<number | undefined>) {
    this.#publish = publish;
  }

  /** How many letters are not acknowledged yet. */
  get size(): number {
    return this.#sendings.size;
  }

  /** Never rejects. */
  async send(node: string, message: AcknowledgedLetter, limits: SendingLimits): Promise<Sent> {
    const name = nameOf(message.kind, message.call_id);
    const sending: Sending = { acknowledged: false, wake: () => undefined };
    const wake = (): void => sending.wake();
    this.#sendings.set(name, sending);
    limits.over?.addEventListener('abort', wake);
    try {
      return await this.#repeat(node, message, limits, sending);
    } finally {
      limits.over?.removeEventListener('abort', wake);
      this.#sendings.delete(name);
    }
  }

  /** The other node has the message. */
  acknowledged(of: AcknowledgedLetter['kind'], callId: string): void {
    const sending = this.#sendings.get(nameOf(of, callId));
    if (!sending) return;
    sending.acknowledged = true;
    sending.wake();
  }

  /** Nothing is sent a second time any more. */
  close(): void {
    this.#closed = true;
    for (const { wake } of this.#sendings.values()) wake();
  }

  async #repeat(
    node: string,
    message: AcknowledgedLetter,
    { over, giveUpMs = Number.POSITIVE_INFINITY, insist }: SendingLimits,
    sending: Sending,
  ): Promise<Sent> {
    const endsAtMs = performance.now() + giveUpMs;
    const isOver = (): boolean => this.#closed || over?.aborted === true || performance.now() >= endsAtMs;
    let mayHaveArrived = false;
    for (;;) {
      mayHaveArrived = (await this.#publish(node, message)) !== 0 || mayHaveArrived;
      if (sending.acknowledged) return 'acknowledged';
      if (!mayHaveArrived && !insist) return 'nobody';
      if (!isOver()) await pause(sending);
      if (sending.acknowledged) return 'acknowledged';
      if (isOver()) return mayHaveArrived ? 'unknown' : 'nobody';
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

function nameOf(kind: AcknowledgedLetter['kind'], callId: string): string {
  return `${kind} ${callId}`;
}
