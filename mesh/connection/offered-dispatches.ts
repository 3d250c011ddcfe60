import { offeredDispatchIds, type TransferredDispatch } from '../../messages/dispatch/transfers.js';
import type { Connection } from './connection.js';
import type { MeshContext } from './context.js';
import { resumeTokenHash } from './resume-tokens.js';

type Context = Pick<MeshContext, 'db' | 'runner' | 'registrationLimit'>;

/**
 * The dispatches that a stopping node offers to an agent (docs/durability.md), while the agent's connection is opened here. They are reserved
 * before the record names this node as their owner: a workflow that asks this node for one waits until it runs here.
 */
export class OfferedDispatches {
  readonly hash: Buffer;
  readonly dispatchIds: string[];
  readonly #runner: Context['runner'];
  /** Those that the record names this node as the owner of, and that do not run yet. */
  #unadopted: string[] = [];

  private constructor(hash: Buffer, dispatchIds: string[], runner: Context['runner']) {
    this.hash = hash;
    this.dispatchIds = dispatchIds;
    this.#runner = runner;
  }

  /** Finds and reserves them; undefined when there are none. `release` is to be called once they run, or will not run. */
  static async reserve(
    { db, runner, registrationLimit }: Context,
    { tenant_id, instance_id }: Connection,
    resumeToken: string | null | undefined,
  ): Promise<OfferedDispatches | undefined> {
    if (typeof resumeToken !== 'string') return undefined;
    const hash = resumeTokenHash(resumeToken);
    const agent = { tenant_id, instance_id };
    const found = await registrationLimit(() => db.tenant(tenant_id, (tx) => offeredDispatchIds(tx, agent, hash)));
    if (found.length === 0) return undefined;
    const offered = new OfferedDispatches(hash, found, runner);
    if (found.every((dispatchId) => runner.reserve(dispatchId))) return offered;
    offered.release(); // this node stops too
    return undefined;
  }

  /** Whether the record names this node as their owner is not known: if it does, they must not count as never sent. */
  uncertain(): void {
    this.#runner.noteUncertain(this.dispatchIds);
  }

  /** The others have ended, or another node has accepted them: nothing here waits for them any more. */
  accepted(dispatches: readonly TransferredDispatch[]): void {
    const accepted = new Set(dispatches.map(({ open }) => open.dispatch_id));
    this.#unadopted = [...accepted];
    for (const dispatchId of this.dispatchIds)
      if (!accepted.has(dispatchId)) this.#runner.releaseReservation(dispatchId);
  }

  /** Continues those that were accepted. */
  adopt(dispatches: readonly TransferredDispatch[]): void {
    for (const { open, progress } of dispatches) this.#runner.adopt(open, progress);
    this.#unadopted = [];
  }

  /** What was accepted and could not be adopted counts as sent: its agent has it, and no other may get it. */
  release(): void {
    this.#runner.noteUncertain(this.#unadopted);
    for (const dispatchId of this.dispatchIds) this.#runner.releaseReservation(dispatchId);
  }
}
