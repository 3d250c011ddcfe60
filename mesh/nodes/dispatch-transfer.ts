import pLimit from 'p-limit';
import type { Db } from '../../db/pool.js';
import { offerDispatches } from '../../messages/dispatch/transfers.js';
import { errorMessage } from '../../runtime/errors.js';
import { settledWithin } from '../../runtime/promises/settled-within.js';
import type { SentDispatch } from '../connected/connected-transport.js';
import type { Connection } from '../connection/connection.js';
import type { MeshContext } from '../connection/context.js';

/** Agents whose dispatches are offered at once. */
const AT_ONCE = 8;

/** Notes that the node stops, so that nodes that stop at the same time offer nothing to each other. */
export async function markDraining(db: Db, meshId: string): Promise<void> {
  await db.system((tx) => tx.query('UPDATE mesh_nodes SET draining = true WHERE mesh_id = $1', [meshId]));
}

type Context = Pick<
  MeshContext,
  'db' | 'log' | 'meshId' | 'registry' | 'runner' | 'sent' | 'clocks' | 'resumeWindowMs'
>;

/**
 * What a stopping node does with the dispatches that outlast its grace, when there is another node: it writes what it knows of them to the
 * record and closes the sockets of their agents, who continue at their next node with their resume tokens. The dispatches stay `sent`.
 */
export class DispatchTransfer {
  readonly #context: Context;
  #running: Promise<void> | undefined;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Never rejects. A second call waits for the first. */
  run(): Promise<void> {
    const { registry, clocks } = this.#context;
    this.#running ??= settledWithin(this.offerNow(registry.all()), clocks.transferMs).then(() => undefined);
    return this.#running;
  }

  /**
   * Offers the dispatches of these agents now, if another node lives. Agents that lose their sockets during the grace cannot come back to this
   * node. Never rejects.
   */
  async offerNow(connections: readonly Connection[]): Promise<void> {
    const { sent } = this.#context;
    const busy = connections.filter(({ agentKey }) => sent.openOf(agentKey).length > 0);
    if (busy.length === 0 || !(await this.hasOtherNode())) return;
    await pLimit(AT_ONCE).map(busy, (connection) => this.#transferAgent(connection));
  }

  /** Never rejects: what cannot be offered is lost, as without another node. */
  async #transferAgent({ agentKey, instance_id }: Connection): Promise<void> {
    const { registry, log } = this.#context;
    try {
      await registry.serializeHello(agentKey, () => this.#offer(agentKey));
    } catch (error) {
      log.warn({ err: errorMessage(error), instance_id }, 'running dispatches could not be offered to another node');
    }
  }

  async #offer(agentKey: string): Promise<void> {
    const { registry, sent, runner, log } = this.#context;
    const connection = registry.get(agentKey);
    const running = sent.openOf(agentKey);
    if (!connection || running.length === 0) return;
    for (const dispatch of running) dispatch.freeze();
    // The agent's next node ends what is not offered to it, so results that came before are recorded first.
    await runner.writesSettled(agentKey);
    await this.#write(connection, running);
    // From here on the next node may own them, so nothing more is written about them here.
    for (const dispatch of running) dispatch.transferred();
    const { instance_id } = connection;
    log.info({ instance_id, dispatches: running.length }, 'running dispatches are offered to another node');
    connection.transition('transferred');
  }

  #write({ tenant_id, instance_id, epoch, resumeTokens }: Connection, running: SentDispatch[]): Promise<void> {
    const { meshId: mesh_id, resumeWindowMs: window_ms } = this.#context;
    const dispatches = running.map((dispatch) => ({
      dispatch_id: dispatch.open.dispatch_id,
      progress: () => dispatch.progress(),
    }));
    const agent = { tenant_id, instance_id, mesh_id, epoch, resume_token_hashes: resumeTokens.hashes };
    const transfer = { ...agent, window_ms, dispatches };
    return this.#context.db.tenant(tenant_id, (tx) => offerDispatches(tx, transfer));
  }

  /** Whether another node lives that is not stopping; false while that cannot be looked up. Never rejects. */
  async hasOtherNode(): Promise<boolean> {
    const { db, meshId, clocks, log } = this.#context;
    try {
      const others = await db.system((tx) =>
        tx.query(
          `SELECT 1 FROM mesh_nodes
            WHERE mesh_id <> $1 AND NOT draining AND renewed_at > now() - $2 * interval '1 ms' LIMIT 1`,
          [meshId, clocks.deadNodeMs],
        ),
      );
      return others.length > 0;
    } catch (error) {
      log.warn({ err: errorMessage(error) }, 'other nodes could not be looked up');
      return false;
    }
  }
}
