import type { MessageCore } from '../core.js';
import type { DispatchRef } from './dispatches.js';

/** Places beyond its bound that a tenant is lent at most, also as a share of the bound. */
const [LENT_MAX, LENT_SHARE] = [16, 1 / 8];

/**
 * What agents have beyond a tenant's bound. At the bound an agent that takes its next message with the end of the one before keeps its place for as long
 * as its queue is not empty, and idle agents would get nothing. So these are lent a few places, and as many ends at the nodes take nothing
 * afterwards. A bound that was lowered is reached in the same way.
 */
export class LentPlaces {
  readonly #limits: Pick<MessageCore['limits'], 'tenantMaxInFlight'>;
  /** By tenant, how many ends at this node are to take nothing. */
  readonly #owed = new Map<string, number>();
  /** Dispatches whose ends take nothing. */
  readonly #paying = new Set<string>();

  constructor(limits: Pick<MessageCore['limits'], 'tenantMaxInFlight'>) {
    this.#limits = limits;
  }

  /** How many messages more than its bound agents of a tenant may have because they are lent. */
  get most(): number {
    return Math.ceil(Math.min(LENT_MAX, this.#limits.tenantMaxInFlight * LENT_SHARE));
  }

  /**
   * Messages of a tenant wait, and this node took none, or not for all agents that are idle. Each node owes its share of what is beyond the bound.
   * @param inFlight messages of the tenant that agents have
   * @param here how many of them this node has sent
   * @returns how many places idle agents may be lent
   */
  settle(tenantId: string, inFlight: number, here: number): number {
    const beyond = inFlight - this.#limits.tenantMaxInFlight;
    if (beyond < 0) {
      this.forget(tenantId);
      return 0;
    }
    const share = beyond * Math.min(1, here / inFlight);
    const odd = Math.random() < share % 1 ? 1 : 0; // rounded up by every node, it would be repaid several times
    this.#owe(tenantId, Math.floor(share) + odd);
    return Math.max(0, this.most - beyond);
  }

  /** A dispatch is about to end. @returns whether that end is to take nothing */
  mustRepay({ tenant_id, dispatch_id }: DispatchRef): boolean {
    const owed = this.#owed.get(tenant_id);
    if (owed === undefined) return false;
    this.#owe(tenant_id, owed - 1);
    this.#paying.add(dispatch_id);
    return true;
  }

  /** It has ended, or is not written. @returns whether it took nothing */
  hasRepaid({ tenant_id, dispatch_id }: DispatchRef, isWritten: boolean): boolean {
    const wasPaying = this.#paying.delete(dispatch_id);
    if (wasPaying && !isWritten) this.#owe(tenant_id, (this.#owed.get(tenant_id) ?? 0) + 1);
    return wasPaying;
  }

  /** A tenant is below its bound. */
  forget(tenantId: string): void {
    this.#owed.delete(tenantId);
  }

  /** Forgets all other tenants: nothing of them waits. */
  keep(tenantIds: ReadonlySet<string>): void {
    for (const tenantId of this.#owed.keys()) if (!tenantIds.has(tenantId)) this.#owed.delete(tenantId);
  }

  #owe(tenantId: string, places: number): void {
    if (places > 0) this.#owed.set(tenantId, places);
    else this.#owed.delete(tenantId);
  }
}
