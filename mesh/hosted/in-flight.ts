import type { DispatchRef } from '../../messages/dispatch/dispatch-ref.js';
import type { LocalEnd } from '../../messages/dispatch/local-mesh.js';
import type { MessageEnd } from '../../messages/dispatch/transactions.js';
import type { DispatchEnd } from '../dispatcher.js';

/** Why a dispatch was stopped from this side. */
type StoppedBy = 'canceled' | 'deadline' | 'closing';

/** One dispatch to a hosted agent that runs in this process. */
export class HostedRun {
  readonly ref: DispatchRef;
  /** Settles when the dispatch has ended here. */
  readonly end: Promise<DispatchEnd>;
  /** Bytes may have gone out to the agent. */
  wentOut = false;
  #localEnd: LocalEnd = { end: null, needsWorkflow: true };
  /** Telling the agent that its answer is not wanted any more; never rejects. */
  cancelSent: Promise<void> = Promise.resolve();
  readonly #abort = new AbortController();
  #stoppedBy: StoppedBy | undefined;

  /** @param fly starts at once and does the work */
  constructor(ref: DispatchRef, fly: (run: HostedRun) => Promise<DispatchEnd>) {
    this.ref = ref;
    this.end = fly(this);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The first reason counts. */
  get stoppedBy(): StoppedBy | undefined {
    return this.#stoppedBy;
  }

  /** How it ended, once it has. */
  get localEnd(): LocalEnd {
    return this.#localEnd;
  }

  /** The message has ended: with this dispatch, or by something else (null). */
  over(end: MessageEnd | null): void {
    this.#localEnd = { end, needsWorkflow: false };
  }

  stop(reason: StoppedBy): void {
    this.#stoppedBy ??= reason;
    this.#abort.abort();
  }
}

/**
 * Waits for the end of a dispatch with signs of life at the start and every `heartbeatMs`.
 * @throws the reason of `context.signal` once it is aborted; the dispatch goes on
 */
export async function watch(
  end: Promise<DispatchEnd>,
  context: { heartbeat(): void; signal: AbortSignal },
  heartbeatMs: number,
): Promise<DispatchEnd> {
  context.signal.throwIfAborted();
  context.heartbeat();
  const timer = setInterval(() => context.heartbeat(), heartbeatMs);
  let leave: () => void = () => undefined;
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(context.signal.reason);
    context.signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([end, left]);
  } finally {
    clearInterval(timer);
    context.signal.removeEventListener('abort', leave);
  }
}
