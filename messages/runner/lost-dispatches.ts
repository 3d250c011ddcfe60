import type { DispatchEnd, Dispatches, DispatchRef } from '../dispatch/dispatches.js';

/** Something other than the dispatch's result closed it, or another node has it. */
export const CLOSED: DispatchEnd = { state: 'closed', message: null };

/** Nothing of the dispatch went out. */
export function notSent(reason: string): DispatchEnd {
  return { state: 'not_sent', message: null, reason };
}

/** A dispatch that is on the record as sent, and the node that owns it there. */
interface Owned extends DispatchRef {
  mesh_id: string | null;
}

/** A dispatch that the record may name this node as the owner of, though it does not run here. */
export interface UncertainDispatch {
  tenant_id: string;
  dispatch_id: string;
  /** Nothing of it went out, and nothing will. */
  neverSent: boolean;
}

interface Uncertain extends UncertainDispatch {
  /** On `performance.now()`. */
  sinceMs: number;
}

/** So long after a statement whose answer is unknown its effect is on the record, or never will be, in milliseconds. */
const [LOOK_AFTER_MS, FORGET_AFTER_MS] = [5_000, 60_000];
/** Those that are looked at in one round, and that are remembered: the oldest are forgotten first. */
const [LOOKS, NOTED_MAX] = [1_000, 20_000];

interface LostDispatchesOptions {
  dispatches: Pick<Dispatches, 'find' | 'openAmong' | 'release' | 'failAsLost'>;
  /** This node. */
  meshId: string;
  /** Nothing of a dispatch was sent: its message goes on. */
  released(ref: DispatchRef & { session_id: string }): void;
}

/** Ends the dispatches that this node does not run, or runs no more, without a result of their agents. */
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

  /** The record is looked at for it later, and it ends. */
  note(dispatch: UncertainDispatch): void {
    this.#uncertain.set(dispatch.dispatch_id, { ...dispatch, sinceMs: performance.now() });
    const [oldest] = this.#uncertain.size > NOTED_MAX ? this.#uncertain.keys() : [];
    if (oldest !== undefined) this.#uncertain.delete(oldest);
  }

  /** Ends those that turn out to be on the record. Rejects while the database is away; the next time goes on. */
  async mend(): Promise<void> {
    const nowMs = performance.now();
    const due = [...this.#uncertain.values()].filter(({ sinceMs }) => nowMs - sinceMs >= LOOK_AFTER_MS).slice(0, LOOKS);
    const found = new Set((await this.#options.dispatches.openAmong(due)).map(({ dispatch_id }) => dispatch_id));
    for (const dispatch of due) {
      const isOurs = found.has(dispatch.dispatch_id) && (await this.#endOurs(dispatch));
      this.#uncertain.delete(dispatch.dispatch_id);
      const mayCome = !isOurs && nowMs - dispatch.sinceMs < FORGET_AFTER_MS;
      if (mayCome) this.#uncertain.set(dispatch.dispatch_id, dispatch); // behind the others
    }
  }

  /** @returns whether the record names this node as its owner; then it has ended */
  async #endOurs({ tenant_id, dispatch_id, neverSent }: Uncertain): Promise<boolean> {
    const open = await this.#options.dispatches.find({ tenant_id, dispatch_id, message_id: '' });
    if (open?.mesh_id !== this.#options.meshId) return false;
    await (neverSent ? this.release(open, 'NEVER_SENT') : this.fail(open));
    if (neverSent) this.#options.released(open);
    return true;
  }

  /**
   * Ends a dispatch that is on the record as sent and does not run here, because its agent is gone. One that this node never sent is released;
   * the agent of any other may have acted, so it is not sent again.
   */
  async disown(ref: Owned): Promise<DispatchEnd> {
    const maySent = this.#uncertain.get(ref.dispatch_id)?.neverSent === false;
    return ref.mesh_id === this.#options.meshId && !maySent ? this.release(ref, 'NEVER_SENT') : this.#failAsLost(ref);
  }

  /** Releases a dispatch of which nothing went out, so that its message is queued again. */
  async release(ref: DispatchRef, reason: string): Promise<DispatchEnd> {
    await this.#persist(() => this.#options.dispatches.release(ref, reason, { nothingSent: true }));
    // Also when it was not released: the commit of an earlier attempt may have done that.
    return notSent(reason);
  }

  /** Fails a dispatch that this node sent, unless another node has it by now. */
  fail(ref: DispatchRef): Promise<DispatchEnd> {
    return this.#failAsLost({ ...ref, mesh_id: this.#options.meshId });
  }

  async #failAsLost(ref: Owned): Promise<DispatchEnd> {
    const options = { owner: ref.mesh_id };
    return (await this.#persist(() => this.#options.dispatches.failAsLost(ref, options))) ?? CLOSED;
  }
}
