import { addAbortListener, once } from 'node:events';
import { type Outcome, refusal } from './tool-result.js';

/** The agent that calls a tool. */
export interface ToolCaller {
  tenant_id: string;
  agent_type: string;
  /** Absent when the token stands for a type only. */
  instance_id?: string;
  /** For limits (that of the chain's depth too) and idempotency: the agent's key (`agentKeyOf`), or the credential's and type's when there is no instance. */
  key: string;
}

/** Nested tool calls that wait for each other, the outermost first. Recorded by the platform, never taken from an agent. */
export type Chain = readonly { instance_id: string; tool: string }[];

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
  /** Aborted when the call is canceled, with its result as the reason. */
  readonly signal = this.#controller.signal;
  readonly #canceled: Promise<Outcome>;
  readonly #causes: Disposable[];

  constructor(endsAtMs: number, withdrawn: AbortSignal, parent: CallParent | undefined) {
    this.endsAtMs = endsAtMs;
    const cancel = (code: 'DEADLINE_EXCEEDED' | 'CANCELED', message: string) => () =>
      this.#controller.abort(refusal(code, message));
    const onTimeout = cancel('DEADLINE_EXCEEDED', 'The tool did not answer in time.');
    const onWithdrawn = cancel('CANCELED', 'The caller has withdrawn the call.');
    const onParentEnded = cancel('CANCELED', 'The dispatch or tool call that this call is part of has ended.');
    this.#causes = [
      setTimeout(onTimeout, Math.max(0, endsAtMs - performance.now())),
      addAbortListener(withdrawn, onWithdrawn),
      ...(parent ? [addAbortListener(parent.ended, onParentEnded)] : []),
    ];
    this.#canceled = once(this.signal, 'abort').then(() => ({ sent: true, result: this.signal.reason }));
    // Listeners of a signal that is aborted already are called a moment later.
    if (withdrawn.aborted) onWithdrawn();
    if (parent?.ended.aborted) onParentEnded();
  }

  /** The outcome of a call that was canceled before it was sent. */
  unsent(): Outcome {
    return { sent: false, result: this.signal.reason };
  }

  /** The outcome of `delivery`, or of the cancellation if that comes first. */
  race(delivery: Promise<Outcome>): Promise<Outcome> {
    return Promise.race([delivery, this.#canceled]);
  }

  /** Releases the timer and the listeners. */
  [Symbol.dispose](): void {
    for (const cause of this.#causes) cause[Symbol.dispose]();
  }
}
