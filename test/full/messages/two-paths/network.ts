import type { DatabaseClock } from '../../../../db/database-clock.js';
import { DispatchLink, type DispatchLinkOptions } from '../../../../mesh/nodes/dispatch-link.js';
import { type NodeMessage, parseNodeMessage } from '../../../../mesh/nodes/node-message.js';
import { createLogger } from '../../../../runtime/logger.js';

/** As between real nodes, only faster. */
const TIMINGS = { repeatMs: 15, answerWaitMs: 150, takenMs: 10 };
const log = createLogger({ level: 'silent' });

/** The way between processes. Of the messages some are lost, and some come twice, the second time behind later ones. */
export class LossyNetwork {
  readonly #clock: DispatchLinkOptions['clock'];
  readonly #listeners = new Map<string, ((message: NodeMessage) => void)[]>();
  #published = 0;

  constructor(clock: DatabaseClock) {
    this.#clock = clock;
  }

  /** The end of a process; other processes reach it by this id until it leaves. */
  link(nodeId: string, dispatches: DispatchLinkOptions['dispatches']): DispatchLink {
    const listeners: ((message: NodeMessage) => void)[] = [];
    this.#listeners.set(nodeId, listeners);
    return new DispatchLink({
      nodeId,
      dispatches,
      log,
      clock: this.#clock,
      timings: TIMINGS,
      hostedNode: () => [...this.#listeners.keys()].find((id) => id !== nodeId) ?? null,
      channel: {
        isReady: true,
        listen: (listener) => void listeners.push(listener),
        publish: async (to, message) => this.#publish(to, JSON.stringify(message)),
      },
    });
  }

  leave(nodeId: string): void {
    this.#listeners.delete(nodeId);
  }

  /** @returns how many listen; a message may be lost on its way to one that does */
  #publish(to: string, text: string): number {
    if (!this.#listeners.has(to)) return 0;
    this.#published += 1;
    const deliver = (): void => {
      const message = parseNodeMessage(text);
      if (!message) throw new Error(`not a message between nodes: ${text}`);
      for (const listener of this.#listeners.get(to) ?? []) listener(message);
    };
    const isLost = this.#published % 5 === 3;
    const comesTwice = this.#published % 4 === 2;
    if (!isLost) setImmediate(deliver);
    if (comesTwice) setTimeout(deliver, TIMINGS.repeatMs);
    return 1;
  }
}
