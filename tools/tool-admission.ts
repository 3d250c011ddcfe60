import { LIMITS } from '../contracts/limits.js';

/** Of the arguments of all calls in flight, which are held until their results are there. */
const ARGUMENT_BYTES_MAX = 64 * 1024 * 1024;

/** Bounds the tool calls in flight: of each caller, and of the whole node with their arguments. */
export class Admission {
  readonly #byCaller = new Map<string, number>();
  #calls = 0;
  #bytes = 0;

  /** @returns to be called once when the call has its result; null when there is no room for it */
  enter(callerKey: string, bytes: number): (() => void) | null {
    const own = this.#byCaller.get(callerKey) ?? 0;
    if (own >= LIMITS.toolCallsInFlightPerCaller || this.#calls >= LIMITS.toolCallsInFlightPerNode) return null;
    if (this.#bytes + bytes > ARGUMENT_BYTES_MAX) return null;
    this.#byCaller.set(callerKey, own + 1);
    this.#calls += 1;
    this.#bytes += bytes;
    return () => this.#leave(callerKey, bytes);
  }

  #leave(callerKey: string, bytes: number): void {
    const left = (this.#byCaller.get(callerKey) ?? 1) - 1;
    if (left > 0) this.#byCaller.set(callerKey, left);
    else this.#byCaller.delete(callerKey);
    this.#calls -= 1;
    this.#bytes -= bytes;
  }
}
