import { addAbortListener, once } from 'node:events';
import type { ToolCallPayload } from '../contracts/api/tools.js';
import type { DispatchRef } from '../messages/dispatch/dispatches.js';
import type { PolicyRequest } from '../policy/policy-request.js';
import { type Outcome, refusal } from './tool-result.js';

/** The agent that calls a tool. */
export interface ToolCaller {
  tenant_id: string;
  agent_type: string;
  /** Absent when the token stands for a type only. */
  instance_id?: string;
  /** Only the call itself names the instance, without proof: the token stands for any instance of the type. */
  is_instance_claimed?: true;
  /**
   * Identifies the caller for limits, the depth of nested calls and idempotency: `agentKeyOf` the agent, or a key of credential and type if no
   * instance is named.
   */
  key: string;
  /** What the caller's token says, for policies. */
  token?: PolicyRequest['token'];
}

/** Nested tool calls that wait for each other, the outermost first. Recorded by the platform, never taken from an agent. */
export type Chain = readonly { instance_id: string; tool: string }[];

/** What a tool call is part of: a dispatch, or a tool call that the calling agent is answering. */
export interface CallParent {
  chain: Chain;
  /** The deadline, on `performance.now()`; infinite while it stands still. */
  readonly endsAtMs: number;
  /** The dispatch, if the parent is one: its message can wait for a human. Absent if the parent is a tool call. */
  dispatch?: DispatchRef;
  /** Aborted when the parent ends for any reason; its calls end with it. */
  ended: AbortSignal;
  session_id?: string;
  /** The skill that the message of the dispatch is for; null for none, absent where nobody knows. */
  skill_id?: string | null;
  traceparent?: string;
  /** The message that the parent is a part of, directly or by the calls around it. */
  message_id?: string | undefined;
}

/** What a caller does while its call is held, which is: waits for a human. */
export interface WhileHeld {
  begin(): void;
  /** @param requestId the request about the call, once there is one */
  waitsFor(requestId: string): void;
  end(): void;
  /** The frame to answer; absent for a caller over HTTP, who asks again. */
  frameId?: string;
}

/** A tool call as it was received. */
export interface ToolRequest {
  caller: ToolCaller;
  payload: ToolCallPayload;
  /** The parent that `payload.dispatch_id` names; it runs and belongs to the caller. */
  parent: CallParent | undefined;
  /** The trace context of the request. */
  traceparent?: string;
  /** Aborted when the caller disconnects, or with the reason `WITHDRAWN` when it withdraws the call. */
  signal: AbortSignal;
  whileHeld?: WhileHeld;
  /** How long the caller waits for a human before it is told APPROVAL_PENDING and asks again; undefined: as long as it takes. */
  asksAgainAfterMs?: number;
}

/** The abort reason of a caller that withdraws its call. The signal of a caller that has only disconnected has another. */
export const WITHDRAWN = 'withdrawn';

/** Ends a call that has no result yet: at its deadline, when the caller withdraws it, or when its parent ends. */
export class CallCancellation {
  #endsAtMs: number;
  /** The time that was left when the clock was stopped; undefined while it runs. */
  #pausedMs: number | undefined;
  #deadline: NodeJS.Timeout | undefined;
  readonly #controller = new AbortController();
  /** Aborted when the call is canceled, with its result as the reason. */
  readonly signal = this.#controller.signal;
  readonly #canceled: Promise<Outcome>;
  readonly #causes: Disposable[];
  readonly #onTimeout: () => void;

  constructor(endsAtMs: number, withdrawn: AbortSignal, parent: CallParent | undefined) {
    this.#endsAtMs = endsAtMs;
    const cancel = (code: 'DEADLINE_EXCEEDED' | 'CANCELED', message: string) => () =>
      this.#controller.abort(refusal(code, message));
    const onWithdrawn = cancel('CANCELED', 'The caller has withdrawn the call.');
    const onParentEnded = cancel('CANCELED', 'The dispatch or tool call that this call is part of has ended.');
    this.#onTimeout = cancel('DEADLINE_EXCEEDED', 'The tool did not answer in time.');
    this.#startDeadline();
    this.#causes = [
      addAbortListener(withdrawn, onWithdrawn),
      ...(parent ? [addAbortListener(parent.ended, onParentEnded)] : []),
    ];
    this.#canceled = once(this.signal, 'abort').then(() => ({ sent: true, result: this.signal.reason }));
    // Listeners of a signal that is aborted already are called a moment later.
    if (withdrawn.aborted) onWithdrawn();
    if (parent?.ended.aborted) onParentEnded();
  }

  /** The deadline, on `performance.now()`. */
  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  /** Milliseconds left. */
  get leftMs(): number {
    return this.#pausedMs ?? Math.max(1, this.#endsAtMs - performance.now());
  }

  /** Stops the clock: the call is held. */
  pause(): void {
    this.#pausedMs = this.leftMs;
    clearTimeout(this.#deadline);
  }

  /** Starts the clock again, with the time that was left. */
  resume(): void {
    this.#endsAtMs = performance.now() + this.leftMs;
    this.#pausedMs = undefined;
    this.#startDeadline();
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
    clearTimeout(this.#deadline);
    for (const cause of this.#causes) cause[Symbol.dispose]();
  }

  #startDeadline(): void {
    this.#deadline = setTimeout(this.#onTimeout, Math.max(0, this.#endsAtMs - performance.now()));
  }
}
