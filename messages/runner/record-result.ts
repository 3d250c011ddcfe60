import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type {
  AgentResult,
  AnswerOrFailure,
  DispatchEnd,
  Dispatches,
  DispatchRef,
  OpenDispatch,
} from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import type { AgentHealth } from './agent-health.js';
import type { RunningDispatch } from './running-dispatches.js';

const FIRST_PAUSE_MS = 50;
const PAUSE_MAX_MS = 2_000;
/** Retried failures that are not an absent database, for example a deadlock or a statement's time limit. */
const FAILURES_MAX = 5;
const UNRECORDED_MAX = 10_000;
/** Something other than the dispatch's result closed it. */
export const CLOSED: DispatchEnd = { state: 'closed', message: null };

/** Nothing of the dispatch went out. */
export function notSent(reason: string): DispatchEnd {
  return { state: 'not_sent', message: null, reason };
}

/**
 * Retries database work until it succeeds. It retries forever, with growing pauses, while the database cannot be reached: an agent's
 * answer must not be lost. It throws any other failure after `FAILURES_MAX` attempts.
 * @param signal ends the retries; the promise then rejects with its reason
 */
export async function persist<T>(work: () => Promise<T>, log: Pick<Logger, 'warn'>, signal?: AbortSignal): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const away = error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
      if (!away) failures += 1;
      if (failures >= FAILURES_MAX) throw error;
      log.warn({ err: errorMessage(error), retry_in_ms: pauseMs }, 'database write failed, retrying');
    }
    await sleep(pauseMs, undefined, signal && { signal });
    pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
  }
}

export interface RecorderOptions {
  dispatches: Dispatches;
  bus: Pick<ChunkBus, 'publish'>;
  health: AgentHealth;
  log: Logger;
  meshId: string;
  /** Once it is aborted, each write is tried only once. */
  closing: AbortSignal;
}

/** Writes the ends of dispatches to the record. While the database is away it retries. */
export class ResultRecorder {
  readonly #options: RecorderOptions;
  /** Sent dispatches whose end could not be written: a defect or a lasting refusal of the database, so there are few. */
  readonly #unrecorded = new LRUCache<string, true>({ max: UNRECORDED_MAX });

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Whether the dispatch was sent from here and its end could not be written. */
  isUnrecorded(dispatchId: string): boolean {
    return this.#unrecorded.get(dispatchId) !== undefined;
  }

  /** Retries while the database is away. */
  persist<T>(work: () => Promise<T>): Promise<T> {
    const { closing, log } = this.#options;
    return closing.aborted ? work() : persist(work, log, closing);
  }

  /** Records a result. Never rejects. */
  async record(running: RunningDispatch, open: OpenDispatch, result: AgentResult): Promise<DispatchEnd> {
    const { log } = this.#options;
    const { dispatch_id } = open;
    // Before the end is visible: a caller that sends again at the end finds the agent's health counted.
    await this.#countHealth(running, open, result);
    try {
      return await this.#write(running, open, result);
    } catch (error) {
      log.error({ err: errorMessage(error), dispatch_id }, 'end of a dispatch could not be recorded');
      if (result.state === 'not_sent') return notSent(result.reason);
    }
    try {
      const error = { code: 'INTERNAL', message: 'The result could not be stored.' };
      return (await this.persist(() => this.#options.dispatches.end(open, { state: 'failed', error }, null))) ?? CLOSED;
    } catch (error) {
      this.#unrecorded.set(dispatch_id, true);
      log.error({ err: errorMessage(error), dispatch_id }, 'dispatch is left to the workflow of its message');
      return { state: 'unrecorded', message: null };
    }
  }

  /** Releases a dispatch of which nothing went out, so that its message is routed again. */
  async release(ref: DispatchRef, reason: string): Promise<DispatchEnd> {
    await this.persist(() => this.#options.dispatches.release(ref, reason, { nothingSent: true }));
    // Also when it was not released: the commit of an earlier attempt may have done that.
    return notSent(reason);
  }

  /**
   * Ends a dispatch that is on the record as sent and does not run here. One that this node owns was never sent, unless it is
   * `unrecorded`. The agent of any other may have acted, so it is not sent again.
   */
  async disown(ref: DispatchRef & { mesh_id: string | null }): Promise<DispatchEnd> {
    const { meshId } = this.#options;
    if (ref.mesh_id === meshId && !this.isUnrecorded(ref.dispatch_id)) return this.release(ref, 'NEVER_SENT');
    return this.#failAsLost(ref);
  }

  async #failAsLost(ref: DispatchRef): Promise<DispatchEnd> {
    return (await this.persist(() => this.#options.dispatches.failAsLost(ref, 'AGENT_DISCONNECTED'))) ?? CLOSED;
  }

  async #countHealth(running: RunningDispatch, open: OpenDispatch, result: AgentResult): Promise<void> {
    const { health } = this.#options;
    const failing = result.state === 'lost' ? running.stopped !== 'closing' : result.health === 'failing';
    if (failing && (await health.failed(open, running.epoch))) running.transport.becameUnhealthy?.(open, result);
    if (result.state !== 'lost' && result.health === 'well') await health.succeeded(open);
  }

  #write(running: RunningDispatch, open: OpenDispatch, result: AgentResult): Promise<DispatchEnd> {
    if (result.state === 'not_sent') return this.release(running.ref, result.reason);
    if (result.state === 'lost') return this.#failAsLost(running.ref);
    return this.#end(running, open, result);
  }

  async #end(running: RunningDispatch, open: OpenDispatch, result: AnswerOrFailure): Promise<DispatchEnd> {
    const { dispatches, bus } = this.#options;
    const { ref, transport } = running;
    for (;;) {
      const { epoch } = running;
      const end = await this.persist(() => dispatches.end(open, result, epoch));
      if (end) return end;
      await transport.epochSettled?.(open);
      if (running.epoch === epoch) break; // not a resume that raced with the result
    }
    const [closed] = await this.persist(() => dispatches.closedAmong([ref]));
    // A newer connection owns the agent, and fails this dispatch as lost as well.
    if (!closed) return this.#failAsLost(ref);
    transport.notifyClosed?.(open, closed.state, '');
    // This very result may have closed it when only the database's answer was lost; then nothing was published.
    bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    return CLOSED;
  }
}
