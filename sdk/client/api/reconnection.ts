import { Backoff } from '../../backoff.js';
import { retryAfterMs } from './errors.js';
import { pause } from './retries.js';

/** Time without an event or a stable connection after which a stream fails. */
const GIVE_UP_MS = 120_000;
/** A connection that was open for longer proves that the platform is up, even without events: it sends a keep-alive every 15 s. */
const STABLE_MS = 15_000;

/** When a stream opens another connection, and when it gives up. */
export class Reconnection {
  readonly #backoff = new Backoff();
  #lastSeenAtMs = Date.now();
  #openedAtMs = Number.POSITIVE_INFINITY;

  /** To be called when a connection is open. */
  opened(): void {
    this.#openedAtMs = Date.now();
  }

  /** To be called with each event. */
  seen(): void {
    this.#lastSeenAtMs = Date.now();
    this.#backoff.reset();
  }

  /**
   * Waits until another connection is due.
   * @param failure why the last one ended
   * @throws the failure after two minutes without the platform; the signal's reason
   */
  async wait(failure: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (Date.now() - this.#openedAtMs > STABLE_MS) this.seen();
    this.#openedAtMs = Number.POSITIVE_INFINITY;
    if (Date.now() - this.#lastSeenAtMs > GIVE_UP_MS) throw failure;
    await pause(this.#backoff.next(retryAfterMs(failure)), signal);
  }
}
