import type { MessageInput } from '../../contracts/workflows.js';
import { errorMessage } from '../../runtime/errors.js';
import { Loop } from '../../runtime/loop.js';
import type { MessageCore } from '../core.js';

const TICK_MS = 100;
/** Concurrent starts of workflows, in all and of one tenant. They are few, so that thousands that are due at once do not slow down other tenants. */
const [STARTS_MAX, STARTS_OF_TENANT_MAX] = [64, 4];
/** The pause between two attempts while Temporal is away. */
const RETRY_MS = 2_000;

/** A message that an agent has. */
interface Watched {
  ref: MessageInput;
  /** When its workflow is to start, on `performance.now()`. */
  dueMs: number;
}

/** Starts the workflows of messages that agents have for long, so that operators see them. Nothing depends on it. */
export class Watcher {
  readonly #messages = new Map<string, Watched>();
  readonly #start: (ref: MessageInput) => Promise<void>;
  readonly #log: MessageCore['log'];
  readonly #loop: Loop;
  #failing = false;

  /** @param start starts the workflow of a message; resolves when Temporal has acknowledged it */
  constructor(start: (ref: MessageInput) => Promise<void>, log: MessageCore['log']) {
    this.#start = start;
    this.#log = log;
    this.#loop = new Loop({ name: 'watch', intervalMs: TICK_MS, work: () => this.#turn(), log });
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  add({ tenant_id, message_id, session_id }: MessageInput, afterMs: number): void {
    const ref = { tenant_id, message_id, session_id };
    this.#messages.set(message_id, { ref, dueMs: performance.now() + afterMs });
  }

  /** The agent no longer has the message. */
  remove(messageId: string): void {
    this.#messages.delete(messageId);
  }

  #due(): Watched[] {
    const now = performance.now();
    const due: Watched[] = [];
    const dueOf = new Map<string, number>();
    for (const message of this.#messages.values()) {
      if (due.length === STARTS_MAX) break;
      if (message.dueMs > now) continue;
      const ofTenant = (dueOf.get(message.ref.tenant_id) ?? 0) + 1;
      dueOf.set(message.ref.tenant_id, ofTenant);
      if (ofTenant <= STARTS_OF_TENANT_MAX) due.push(message);
    }
    return due;
  }

  /** Starts some of the workflows that are due. @returns milliseconds until the next turn; 0 while there may be more */
  async #turn(): Promise<number> {
    const due = this.#due();
    const results = await Promise.allSettled(due.map(({ ref }) => this.#start(ref)));
    const failure = results.find((result) => result.status === 'rejected');
    due.forEach((message, index) => {
      // The message may have ended meanwhile. A failed start is put at the end.
      if (!this.#messages.delete(message.ref.message_id) || results[index]?.status === 'fulfilled') return;
      this.#messages.set(message.ref.message_id, { ...message, dueMs: performance.now() + RETRY_MS });
    });
    if (failure && !this.#failing)
      this.#log.warn({ err: errorMessage(failure.reason) }, 'messages cannot be watched yet; trying again');
    this.#failing = failure !== undefined;
    return due.length === 0 || this.#failing ? TICK_MS : 0;
  }
}
