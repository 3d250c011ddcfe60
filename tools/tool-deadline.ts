import { type Outcome, refusal } from './tool-result.js';
import type { Work } from './tool-work.js';

/** What ends a call before its answer: its deadline, its caller, or the end of the work that it is part of. */
export class CallEnding {
  /** On `performance.now()`. */
  readonly endsAtMs: number;
  readonly #over = new AbortController();
  readonly #first: Promise<Outcome>;
  readonly #timer: NodeJS.Timeout;
  readonly #signals: [AbortSignal, () => void][] = [];

  constructor(endsAtMs: number, callerGone: AbortSignal, work: Work | undefined) {
    this.endsAtMs = endsAtMs;
    let resolve: (outcome: Outcome) => void = () => undefined;
    this.#first = new Promise((settled) => {
      resolve = settled;
    });
    const end = (code: 'DEADLINE_EXCEEDED' | 'CANCELED', message: string): void => {
      resolve({ sent: true, result: refusal(code, message) });
      this.#over.abort();
    };
    const late = () => end('DEADLINE_EXCEEDED', 'The tool did not answer in time.');
    this.#timer = setTimeout(late, Math.max(0, endsAtMs - performance.now()));
    this.#listen(callerGone, () => end('CANCELED', 'The caller has withdrawn the call.'));
    if (work) this.#listen(work.ended, () => end('CANCELED', 'The work that the call was part of has ended.'));
  }

  /** Aborted when the answer is not wanted any more. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** The outcome of a call that had ended before it was sent. */
  async unsent(): Promise<Outcome> {
    return { ...(await this.#first), sent: false };
  }

  /** The outcome of `delivery`, or that of the end that came before it. */
  before(delivery: Promise<Outcome>): Promise<Outcome> {
    return Promise.race([delivery, this.#first]);
  }

  /** The call has its answer. */
  dispose(): void {
    clearTimeout(this.#timer);
    for (const [signal, listener] of this.#signals) signal.removeEventListener('abort', listener);
  }

  #listen(signal: AbortSignal, listener: () => void): void {
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    this.#signals.push([signal, listener]);
  }
}
