import type { AgentRef } from '../../agents/agent-row.js';
import type { DispatchRef } from './dispatches.js';
import type { Queues } from './queues.js';

/** A queue of which agents have got nothing although they have room. */
export interface StarvingQueue {
  queue: string;
  /** Ids of agents of this node. */
  agents: string[];
}

/** Places that a tenant is lent at once at most, also as a share of its bound. */
const [LENT_MAX, LENT_SHARE] = [16, 1 / 8];

/**
 * Places beyond a tenant's bound of messages that agents have. At the bound an agent that takes its next message with the end of the one before keeps its
 * place for as long as its queue is not empty, and other queues would get none. So each of these is lent a place in turn, and as many ends at this
 * node take nothing afterwards.
 */
export class LentPlaces {
  readonly #queues: Pick<Queues, 'beyondBound'>;
  readonly #bound: () => number;
  /** By tenant, how many ends are to take nothing. */
  readonly #owed = new Map<string, number>();
  /** The last queue of a tenant that had its turn. */
  readonly #lastQueue = new Map<string, string>();
  /** Dispatches whose ends take nothing. */
  readonly #paying = new Set<string>();

  constructor(queues: Pick<Queues, 'beyondBound'>, bound: () => number) {
    this.#queues = queues;
    this.#bound = bound;
  }

  /** A dispatch is about to end. @returns whether that end gives a place back, and is to take nothing */
  mustRepay({ tenant_id, dispatch_id }: DispatchRef): boolean {
    if (!this.#owed.has(tenant_id)) return false;
    this.#owe(tenant_id, -1);
    this.#paying.add(dispatch_id);
    return true;
  }

  /** It has ended, or `isWritten` not. @returns whether it gave a place back */
  hasRepaid({ tenant_id, dispatch_id }: DispatchRef, isWritten: boolean): boolean {
    const wasPaying = this.#paying.delete(dispatch_id);
    if (wasPaying && !isWritten) this.#owe(tenant_id, 1);
    return wasPaying;
  }

  /**
   * Lends places to starving queues of a tenant that is at its bound; where it has passed that, what is beyond is given back first.
   * @param take takes a message for an agent with so many places beyond the bound, and says how many it has got
   */
  async lend(tenant_id: string, starving: StarvingQueue[], take: (agent: AgentRef, lent: number) => Promise<number>) {
    const beyond = await this.#queues.beyondBound(tenant_id);
    this.#owed.delete(tenant_id);
    if (beyond > 0) this.#owe(tenant_id, beyond);
    if (beyond !== 0) return;
    const most = Math.min(LENT_MAX, Math.ceil(this.#bound() * LENT_SHARE));
    let lent = 0;
    for (const { queue, agents } of this.#inTurn(tenant_id, starving).slice(0, 2 * most)) {
      if (lent === most) return;
      this.#lastQueue.set(tenant_id, queue);
      for (const instance_id of agents) {
        const got = await take({ tenant_id, instance_id }, lent + 1);
        this.#owe(tenant_id, got);
        lent += got;
        if (got > 0) break;
      }
    }
  }

  /** Forgets all other tenants. */
  keep(tenantIds: ReadonlySet<string>): void {
    for (const known of [this.#owed, this.#lastQueue])
      for (const tenantId of known.keys()) if (!tenantIds.has(tenantId)) known.delete(tenantId);
  }

  #inTurn(tenantId: string, starving: StarvingQueue[]): StarvingQueue[] {
    const last = this.#lastQueue.get(tenantId) ?? '';
    return [...starving.filter(({ queue }) => queue > last), ...starving.filter(({ queue }) => queue <= last)];
  }

  #owe(tenantId: string, places: number): void {
    const owed = (this.#owed.get(tenantId) ?? 0) + places;
    if (owed > 0) this.#owed.set(tenantId, owed);
    else this.#owed.delete(tenantId);
  }
}
