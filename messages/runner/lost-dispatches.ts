import { LRUCache } from 'lru-cache';
import type { DispatchEnd, Dispatches, DispatchRef } from '../dispatch/dispatches.js';

const UNRECORDED_MAX = 10_000;
/** Refusals that are remembered. A dispatch that was forwarded before its refusal comes long before this many further ones. */
const REFUSED_MAX = 100_000;

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

interface LostDispatchesOptions {
  dispatches: Pick<Dispatches, 'release' | 'failAsLost'>;
  /** This node. */
  meshId: string;
}

/** Ends the dispatches that this node does not run, or runs no more, without a result of their agents. */
export class LostDispatches {
  /** Dispatches that this node has said it never sent, so that one which is forwarded late is not sent. */
  readonly refused = new LRUCache<string, true>({ max: REFUSED_MAX });
  /** Sent dispatches whose end could not be written: a defect or a lasting refusal of the database, so there are few. */
  readonly #unrecorded = new LRUCache<string, true>({ max: UNRECORDED_MAX });
  readonly #options: LostDispatchesOptions;
  readonly #persist: <T>(work: () => Promise<T>) => Promise<T>;

  /** @param persist repeats work while the database is away */
  constructor(options: LostDispatchesOptions, persist: <T>(work: () => Promise<T>) => Promise<T>) {
    this.#options = options;
    this.#persist = persist;
  }

  /** From here on `disown` takes it for sent: nobody knows whether this node owns it. */
  noteUnrecorded(dispatchId: string): void {
    this.#unrecorded.set(dispatchId, true);
  }

  /** Whether the dispatch was sent from here and its end could not be written. */
  isUnrecorded(dispatchId: string): boolean {
    return this.#unrecorded.get(dispatchId) !== undefined;
  }

  /** Notes that the dispatch is not sent from here any more. */
  refuse(dispatchId: string): void {
    this.refused.set(dispatchId, true);
  }

  /**
   * Ends a dispatch that is on the record as sent and does not run here. One that this node owns was never sent, unless it is
   * `unrecorded`. The agent of any other may have acted, so it is not sent again.
   * @param options.unlessOffered leaves one that its agent may still continue at another node
   */
  async disown(ref: Owned, options: { unlessOffered?: boolean } = {}): Promise<DispatchEnd> {
    const isNeverSent = ref.mesh_id === this.#options.meshId && !this.isUnrecorded(ref.dispatch_id);
    if (!isNeverSent) return this.#failAsLost(ref, options);
    this.refuse(ref.dispatch_id);
    return this.release(ref, 'NEVER_SENT');
  }

  /** Releases a dispatch of which nothing went out, so that its message is routed again. */
  async release(ref: DispatchRef, reason: string): Promise<DispatchEnd> {
    await this.#persist(() => this.#options.dispatches.release(ref, reason, { nothingSent: true }));
    // Also when it was not released: the commit of an earlier attempt may have done that.
    return notSent(reason);
  }

  /** Fails a dispatch that this node sent, unless another node has it by now. */
  fail(ref: DispatchRef): Promise<DispatchEnd> {
    return this.#failAsLost({ ...ref, mesh_id: this.#options.meshId });
  }

  async #failAsLost(ref: Owned, { unlessOffered = false } = {}): Promise<DispatchEnd> {
    const options = { owner: ref.mesh_id, unlessOffered };
    return (
      (await this.#persist(() => this.#options.dispatches.failAsLost(ref, 'AGENT_DISCONNECTED', options))) ?? CLOSED
    );
  }
}
