import { CLOSE_CODES } from '../../contracts/errors.js';
import { onceReachable } from '../../db/once-reachable.js';
import type { Tx } from '../../db/pool.js';
import type { Clocks } from '../../runtime/clocks.js';
import { Loop } from '../../runtime/loop.js';
import type { MeshContext } from '../connection/context.js';
import { FORGET_NODES } from './dead-nodes.js';

type NodeContext = Pick<MeshContext, 'db' | 'log' | 'meshId' | 'registry'> & { clocks: Pick<Clocks, 'reconcileMs'> };

/** This process as a mesh node: it renews its row, by which others know that it lives. */
export class MeshNode {
  readonly #context: NodeContext;
  readonly #renewal: Loop;

  constructor(context: NodeContext) {
    this.#context = context;
    const { log, clocks } = context;
    this.#renewal = new Loop({ name: 'renewal', intervalMs: clocks.reconcileMs, work: () => this.#renew(), log });
  }

  /** Registers the node, as soon as the database answers, and starts to renew its row. */
  async start(): Promise<void> {
    const { db, meshId, log } = this.#context;
    await onceReachable(() => db.renewal((tx) => renewNode(tx, meshId)), log);
    this.#renewal.start();
  }

  /** Removes the node's row. When the database is away, or a dispatch of this node has no end yet, others remove it later. */
  async stop(): Promise<void> {
    const { db, meshId, log } = this.#context;
    await this.#renewal.stop();
    await db
      .system((tx) => tx.query(FORGET_NODES, [[meshId]]))
      .catch((error: Error) => log.warn({ err: error.message }, 'node row could not be removed'));
  }

  async #renew(): Promise<void> {
    const { db, meshId, registry, log } = this.#context;
    const known = await db.renewal((tx) => renewNode(tx, meshId));
    if (known) return;
    log.warn({ mesh_id: meshId }, 'node was presumed dead, its agents have to reconnect');
    // Another process has taken the agents offline; they connect again and resume.
    for (const connection of registry.all()) connection.socket.close(CLOSE_CODES.GOING_AWAY, 'connect again');
  }
}

/** A node whose renewals were this far apart has lived through an outage, in milliseconds. */
const OUTAGE_MS = 30_000;

/**
 * Writes or renews the node's row. Needs a system transaction.
 * @returns false when there was no row: the node is new, or another one has presumed it dead and removed its row
 */
async function renewNode(tx: Tx, meshId: string): Promise<boolean> {
  const [row] = await tx.query<{ known: boolean }>(
    // `xmax` is 0 in a row that the statement inserted.
    `INSERT INTO mesh_nodes AS n (mesh_id) VALUES ($1)
     ON CONFLICT (mesh_id) DO UPDATE SET renewed_at = now(),
       resumed_at = CASE WHEN n.renewed_at < now() - $2 * interval '1 ms' THEN now() ELSE n.resumed_at END
     RETURNING xmax <> 0 AS known`,
    [meshId, OUTAGE_MS],
  );
  return row?.known === true;
}
