import { errorMessage, isTenantBusy, isTransient } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { DispatchEnd, Dispatches, DispatchRef } from '../dispatch/dispatches.js';

/** Something other than the dispatch's result closed it, or another node has it. */
export const CLOSED: DispatchEnd = { state: 'closed', message: null };

/** Nothing of the dispatch went out. */
export function notSent(reason: string): DispatchEnd {
  return { state: 'not_sent', message: null, reason };
}

/** A dispatch that is on the record as sent, and the node that owns it there. */
interface Owned extends DispatchRef {
  mesh_id: string;
}

/** A dispatch that does not run here, although the record may name this node as its owner. */
export interface UncertainDispatch {
  tenant_id: string;
  dispatch_id: string;
  /** Nothing of it went out, and nothing will. */
  nothingSent: boolean;
}

interface Uncertain extends UncertainDispatch {
  /** On `performance.now()`. */
  sinceMs: number;
}

/** A statement whose answer was lost may take effect later. The record is looked at after the first time, and until the second, in milliseconds. */
const [LOOK_AFTER_MS, FORGET_AFTER_MS] = [5_000, 60_000];
/** The pause, in milliseconds, after a dispatch could not be ended. */
const FAILED_PAUSE_MS = 60_000;
/** Dispatches that are looked at in one round, and that are remembered at most. The oldest are forgotten first. */
const [LOOKS, NOTED_MAX] = [1_000, 20_000];

interface LostDispatchesOptions {
  dispatches: Pick<Dispatches, 'find' | 'openAmong' | 'release' | 'failAsLost'>;
  /** This node. */
  meshId: string;
  log: Pick<Logger, 'warn'>;
}

/** Ends dispatches without a result: those that this node no longer runs, or never ran although the record names it as owner. */
export class LostDispatches {
  /** By id, the oldest first. */
  readonly #uncertain = new Map<string, Uncertain>();
  readonly #options: LostDispatchesOptions;
  readonly #persist: <T>(work: () => Promise<T>) => Promise<T>;

  /** @param persist repeats work while the database is away */
  constructor(options: LostDispatchesOptions, persist: <T>(work: () => Promise<T>) => Promise<T>) {
    this.#options = options;
    this.#persist = persist;
  }

  /** Remembers a dispatch. `mend` ends it later, if it is on the record. */
  note(dispatch: UncertainDispatch): void {
    this.#uncertain.set(dispatch.dispatch_id, { ...dispatch, sinceMs: performance.now() });
    const [oldest] = this.#uncertain.size > NOTED_MAX ? this.#uncertain.keys() : [];
    if (oldest !== undefined) this.#uncertain.delete(oldest);
  }

  /** Ends the remembered dispatches that are on the record. Rejects while the database is away; the next call goes on. */
  async mend(): Promise<void> {
    const nowMs = performance.now();
    const due = [...this.#uncertain.values()].filter(({ sinceMs }) => nowMs - sinceMs >= LOOK_AFTER_MS).slice(0, LOOKS);
    const found = new Set((await this.#options.dispatches.openAmong(due)).map(({ dispatch_id }) => dispatch_id));
    for (const dispatch of due) {
      const outcome = found.has(dispatch.dispatch_id) ? await this.#endOurs(dispatch) : 'not_ours';
      this.#uncertain.delete(dispatch.dispatch_id);
      const mayCome = outcome === 'not_ours' && nowMs - dispatch.sinceMs < FORGET_AFTER_MS;
      const sinceMs = outcome === 'failed' ? nowMs + FAILED_PAUSE_MS : dispatch.sinceMs;
      if (mayCome || outcome === 'failed') this.#uncertain.set(dispatch.dispatch_id, { ...dispatch, sinceMs }); // behind the others
    }
  }

  /** Ends a dispatch if the record names this node as its owner. A failure is not retried here, so that one that fails for good does not delay the others. */
  async #endOurs({ tenant_id, dispatch_id, nothingSent }: Uncertain): Promise<'ended' | 'not_ours' | 'failed'> {
    const { dispatches, meshId, log } = this.#options;
    try {
      const open = await dispatches.find({ tenant_id, dispatch_id });
      if (open?.mesh_id !== meshId) return 'not_ours';
      if (nothingSent) await dispatches.release(open, 'NEVER_SENT', { nothingSent: true });
      else await dispatches.failAsLost(open, { mesh_id: meshId });
      return 'ended';
    } catch (error) {
      if (isTransient(error) && !isTenantBusy(error)) throw error;
      log.warn({ err: errorMessage(error), dispatch_id }, 'a dispatch that does not run here could not be ended');
      return 'failed';
    }
  }

  /**
   * Ends a dispatch that is on the record as sent and does not run here, because its agent is gone. One that this node never sent is released;
   * the agent of any other may have acted, so it is not sent again.
   */
  async endUnowned(ref: Owned): Promise<DispatchEnd> {
    const mayHaveBeenSent = this.#uncertain.get(ref.dispatch_id)?.nothingSent === false;
    return ref.mesh_id === this.#options.meshId && !mayHaveBeenSent
      ? this.release(ref, 'NEVER_SENT')
      : this.#failAsLost(ref);
  }

  /** Releases a dispatch of which nothing went out, so that its message is queued again. */
  async release(ref: DispatchRef, reason: string): Promise<DispatchEnd> {
    await this.#persist(() => this.#options.dispatches.release(ref, reason, { nothingSent: true }));
    // Even if this call released nothing: an earlier attempt may have, whose answer was lost.
    return notSent(reason);
  }

  /** Fails a dispatch that this node sent, unless another node has it by now. */
  fail(ref: DispatchRef): Promise<DispatchEnd> {
    return this.#failAsLost({ ...ref, mesh_id: this.#options.meshId });
  }

  async #failAsLost(ref: Owned): Promise<DispatchEnd> {
    const conditions = { mesh_id: ref.mesh_id };
    return (await this.#persist(() => this.#options.dispatches.failAsLost(ref, conditions))) ?? CLOSED;
  }
}
