import { type Outcome, refusal } from './tool-result.js';

/** The agent that calls a tool. */
export interface ToolCaller {
  tenant_id: string;
  agent_type: string;
  /** Absent when the token stands for a type only. */
  instance_id?: string;
  /** The key for limits and idempotency. */
  key: string;
}

/** One tool call in a chain of nested calls. */
export interface ChainLink {
  instance_id: string;
  tool: string;
}

/** Nested tool calls that wait for each other, the outermost first. Recorded by the platform, never taken from an agent. */
export type Chain = readonly ChainLink[];

/** What a tool call is part of: a dispatch, or a tool call that the calling agent is answering. */
export interface CallParent {
  chain: Chain;
  /** The deadline, on `performance.now()`. */
  endsAtMs: number;
  /** Aborted when the parent ends for any reason; its calls end with it. */
  ended: AbortSignal;
  session_id?: string;
  traceparent?: string;
}

/** Ends a call that has no result yet: at its deadline, when the caller withdraws it, or when its parent ends. */
export class CallCancellation {
  /** The deadline, on `performance.now()`. */
  readonly endsAtMs: number;
  readonly #controller = new AbortController();
  readonly #canceled: Promise<Outcome>;
  readonly #timer: NodeJS.Timeout;
  readonly #listeners: [AbortSignal, () => void][] = [];

  constructor(endsAtMs: number, withdrawn: AbortSignal, parent: CallParent | undefined) {
    this.endsAtMs = endsAtMs;
    let resolve: (outcome: Outcome) => void = () => undefined;
    this.#canceled = new Promise((settled) => {
      resolve = settled;
    });
    const cancel = (code: 'DEADLINE_EXCEEDED' | 'CANCELED', message: string): void => {
      resolve({ sent: true, result: refusal(code, message) });
      this.#controller.abort();
    };
    const expire = () => cancel('DEADLINE_EXCEEDED', 'The tool did not answer in time.');
    this.#timer = setTimeout(expire, Math.max(0, endsAtMs - performance.now()));
    this.#listen(withdrawn, () => cancel('CANCELED', 'The caller has withdrawn the call.'));
    if (parent)
      this.#listen(parent.ended, () =>
        cancel('CANCELED', 'The dispatch or tool call that this call is part of has ended.'),
      );
  }

  /** Aborted when the call is canceled. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The outcome of a call that was canceled before it was sent. */
  async unsent(): Promise<Outcome> {
    return { ...(await this.#canceled), sent: false };
  }

  /** The outcome of `delivery`, or of the cancellation if that comes first. */
  race(delivery: Promise<Outcome>): Promise<Outcome> {
    return Promise.race([delivery, this.#canceled]);
  }

  /** Releases the timer and the listeners; called once the call has its result. */
  dispose(): void {
    clearTimeout(this.#timer);
    for (const [signal, listener] of this.#listeners) signal.removeEventListener('abort', listener);
  }

  #listen(signal: AbortSignal, listener: () => void): void {
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    this.#listeners.push([signal, listener]);
  }
}
