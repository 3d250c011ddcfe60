import type { AgentRef } from '../../agents/agent-row.js';
import { persist, type Tx } from '../../db/pool.js';
import {
  claimDispatches,
  forgetOffers,
  offerAgain,
  offeredDispatchIds,
  readClaimed,
  type TransferredDispatch,
} from '../../messages/dispatch/transfers.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Connection } from './connection.js';
import type { MeshContext } from './context.js';
import { resumeTokenHash } from './resume-tokens.js';

type Context = Pick<MeshContext, 'db' | 'runner' | 'register' | 'resumeWindowMs' | 'log'>;

/** Dispatches read in one transaction: few, because each comes with its payload and its output so far. */
const READ_AT_ONCE = 16;

/**
 * The dispatches that a stopping node offers to an agent (docs/durability.md), while the agent's connection is opened here. They are reserved
 * before the record names this node as their owner, so that a request to cancel one waits until it runs here.
 */
export class OfferedDispatches {
  readonly #context: Context;
  readonly #agent: AgentRef;
  readonly #hash: Buffer;
  readonly #dispatchIds: string[];
  /** Ids of the dispatches that this node has claimed: the record names it as their owner. */
  readonly claimedIds: string[] = [];
  /** Ids of the claimed dispatches that do not run here yet. */
  #unadopted: string[] = [];

  private constructor(context: Context, connection: Connection, hash: Buffer, dispatchIds: string[]) {
    const { tenant_id, instance_id } = connection;
    this.#context = context;
    this.#agent = { tenant_id, instance_id };
    this.#hash = hash;
    this.#dispatchIds = dispatchIds;
  }

  /** Finds and reserves the offered dispatches; undefined when there are none. Call `release` once they run, or when they will not run. */
  static async reserve(
    context: Context,
    connection: Connection,
    resumeToken: string | null | undefined,
  ): Promise<OfferedDispatches | undefined> {
    if (typeof resumeToken !== 'string') return undefined;
    const { db, runner, register } = context;
    const hash = resumeTokenHash(resumeToken);
    const { tenant_id } = connection;
    const found = await register(tenant_id, () =>
      db.tenant(tenant_id, (tx) => offeredDispatchIds(tx, connection, hash)),
    );
    if (found.length === 0) return undefined;
    const offered = new OfferedDispatches(context, connection, hash, found);
    if (found.every((dispatchId) => runner.reserve(dispatchId))) return offered;
    offered.release(); // this node stops too
    return undefined;
  }

  /** Claims the dispatches for this node, in the transaction that raises the epoch. @returns the ids of those still offered */
  claim(tx: Tx, epoch: number, meshId: string): Promise<string[]> {
    return claimDispatches(tx, this.#agent, { hash: this.#hash, dispatchIds: this.#dispatchIds, epoch, meshId });
  }

  /** Called when it is unknown whether the claim was committed: if it was, the dispatches must not count as never sent. */
  noteClaimUncertain(): void {
    this.#context.runner.noteUncertain(this.#agent.tenant_id, this.#dispatchIds);
  }

  /** Called after the commit. Reservations of the others are released: these have ended, or another node has claimed them. */
  claimed(dispatchIds: readonly string[]): void {
    this.claimedIds.push(...dispatchIds);
    this.#unadopted = this.claimedIds;
    const claimed = new Set(dispatchIds);
    for (const dispatchId of this.#dispatchIds)
      if (!claimed.has(dispatchId)) this.#context.runner.releaseReservation(dispatchId);
  }

  /**
   * Continues the claimed dispatches. If the socket was lost meanwhile, offers them again: the agent has only its old token, and may bring it
   * to any node.
   * @returns whether any continue
   */
  async adopt(connection: Connection): Promise<boolean> {
    if (this.claimedIds.length === 0) return false;
    const found = await this.#readAll();
    if (connection.state !== 'AWAIT_WELCOME') {
      await this.#offerAgain(connection.epoch);
      return false;
    }
    for (const { open, progress } of found) this.#context.runner.adopt(open, progress);
    this.#unadopted = [];
    return found.length > 0;
  }

  /** Deletes the offers, because the agent is connected. Never rejects; offers that cannot be deleted expire. */
  async forget({ epoch }: Connection): Promise<void> {
    if (this.claimedIds.length === 0) return;
    const claimed = { ...this.#agent, dispatchIds: this.claimedIds, epoch };
    await this.#context.db
      .tenant(this.#agent.tenant_id, (tx) => forgetOffers(tx, claimed))
      .catch((error: unknown) =>
        this.#context.log.warn({ err: errorMessage(error) }, 'offers of claimed dispatches could not be deleted'),
      );
  }

  /** Releases the reservations. Claimed dispatches that do not run here count as sent: their agent has them, and no other may get them. */
  release(): void {
    this.#context.runner.noteUncertain(this.#agent.tenant_id, this.#unadopted);
    for (const dispatchId of this.#dispatchIds) this.#context.runner.releaseReservation(dispatchId);
  }

  async #readAll(): Promise<TransferredDispatch[]> {
    const found: TransferredDispatch[] = [];
    for (let from = 0; from < this.claimedIds.length; from += READ_AT_ONCE) {
      const portion = this.claimedIds.slice(from, from + READ_AT_ONCE);
      found.push(...(await this.#persist((tx) => readClaimed(tx, this.#agent, portion))));
    }
    return found;
  }

  async #offerAgain(epoch: number): Promise<void> {
    const { resumeWindowMs } = this.#context;
    const claimed = { ...this.#agent, dispatchIds: this.claimedIds, epoch };
    await this.#persist((tx) => offerAgain(tx, claimed, resumeWindowMs));
    this.#unadopted = [];
  }

  /** Repeats `work` while the database is away, because the record names this node as the owner of the dispatches. */
  #persist<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const { db, log, register } = this.#context;
    const { tenant_id } = this.#agent;
    return persist(() => register(tenant_id, () => db.tenant(tenant_id, work)), log);
  }
}
