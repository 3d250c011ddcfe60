import type { MessageCore } from '../core.js';
import type { DispatchRef } from './dispatches.js';

/** How many places beyond its bound a tenant is lent: 16 at most, and at most an eighth of the bound (rounded up). */
const [LENT_MAX, LENT_SHARE] = [16, 1 / 8];

/**
 * Messages that agents have beyond a tenant's bound. At the bound, an agent that takes its next message with each end keeps its place for as long as its queue
 * is not empty, and idle agents would get nothing: with a bound of 2 and 400 messages for one agent, five for an idle one waited until all 400 were done, and are
 * done within a second so. Idle agents are lent a few places, and afterwards as many dispatches end without taking a next message. A bound that was lowered is
 * reached in the same way.
 */
export class LentPlaces {
  readonly #limits: Pick<MessageCore['limits'], 'tenantMaxInFlight'>;
  /** By tenant, how many dispatches at this node must end without taking a next message. */
  readonly #owed = new Map<string, number>();
  /** Dispatches that are ending and take no next message. */
  readonly #paying = new Set<string>();

  constructor(limits: Pick<MessageCore['limits'], 'tenantMaxInFlight'>) {
    this.#limits = limits;
  }

  /** How many messages beyond its bound the agents of a tenant may have. */
  get most(): number {
    return Math.ceil(Math.min(LENT_MAX, this.#limits.tenantMaxInFlight * LENT_SHARE));
  }

  /**
   * To be called when messages of a tenant wait, and this node took none or has idle agents left. Each node must repay its share of the messages beyond the
   * bound.
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
    const odd = Math.random() < share % 1 ? 1 : 0; // if every node rounded up, it would be repaid several times
    this.#owe(tenantId, Math.floor(share) + odd);
    return Math.max(0, this.most - beyond);
  }

  /** A dispatch is about to end. @returns whether it must take no next message */
  mustRepay({ tenant_id, dispatch_id }: DispatchRef): boolean {
    const owed = this.#owed.get(tenant_id);
    if (owed === undefined) return false;
    this.#owe(tenant_id, owed - 1);
    this.#paying.add(dispatch_id);
    return true;
  }

  /** The dispatch has ended; `isWritten` false: its end was not written. @returns whether it repaid a place */
  hasRepaid({ tenant_id, dispatch_id }: DispatchRef, isWritten: boolean): boolean {
    const wasPaying = this.#paying.delete(dispatch_id);
    if (wasPaying && !isWritten) this.#owe(tenant_id, (this.#owed.get(tenant_id) ?? 0) + 1);
    return wasPaying;
  }

  /** A tenant is below its bound, and owes nothing. */
  forget(tenantId: string): void {
    this.#owed.delete(tenantId);
  }

  /** Forgets all other tenants, because no messages of theirs wait. */
  keep(tenantIds: ReadonlySet<string>): void {
    for (const tenantId of this.#owed.keys()) if (!tenantIds.has(tenantId)) this.#owed.delete(tenantId);
  }

  #owe(tenantId: string, places: number): void {
    if (places > 0) this.#owed.set(tenantId, places);
    else this.#owed.delete(tenantId);
  }
}
