import type { AgentRow } from '../../agents/agent-row.js';
import { recordHealth } from '../../agents/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import { onceReachable } from '../../db/once-reachable.js';
import type { Tx } from '../../db/pool.js';
import type { Clocks } from '../../runtime/clocks.js';
import { Loop } from '../../runtime/loop.js';
import type { MeshContext } from '../connection/context.js';

type NodeContext = Pick<MeshContext, 'db' | 'log' | 'meshId' | 'registry'> & {
  clocks: Pick<Clocks, 'reconcileMs' | 'deadNodeMs'>;
};

/**
 * This process as a mesh node: it renews its row, and takes the agents of dead nodes offline. While the database is away, or stands still, no node
 * can renew, and afterwards every one looks dead until it has. So a node sweeps only once it has renewed without a gap for as long as another
 * has to be silent to be dead. A node that has just started knows of no outage before it, and waits as long.
 */
export class MeshNode {
  readonly #context: NodeContext;
  readonly #renewal: Loop;
  /** Since when this node's renewals have succeeded without a failure or a gap; infinite while they fail. On `performance.now()`, as the next. */
  #steadySinceMs = Number.POSITIVE_INFINITY;
  #renewedAtMs = 0;

  constructor(context: NodeContext) {
    this.#context = context;
    const { log, clocks } = context;
    this.#renewal = new Loop({ name: 'renewal', intervalMs: clocks.reconcileMs, work: () => this.#renew(), log });
  }

  /** Registers the node, as soon as the database answers, and starts to renew its row. */
  async start(): Promise<void> {
    const { db, meshId, log } = this.#context;
    await onceReachable(() => db.renewal((tx) => renewNode(tx, meshId)), log);
    this.#steadySinceMs = performance.now();
    this.#renewedAtMs = this.#steadySinceMs;
    this.#renewal.start();
  }

  /** Removes the node's row. When the database is away, other nodes remove it later. */
  async stop(): Promise<void> {
    const { db, meshId, log } = this.#context;
    await this.#renewal.stop();
    await db
      .system((tx) => removeNode(tx, meshId))
      .catch((error: Error) => log.warn({ err: error.message }, 'node row could not be removed'));
  }

  async #renew(): Promise<void> {
    const { db, meshId, registry, clocks, log } = this.#context;
    const steadySinceMs = this.#steadySinceMs;
    this.#steadySinceMs = Number.POSITIVE_INFINITY; // while the renewal fails
    const known = await db.renewal((tx) => renewNode(tx, meshId));
    const renewedAtMs = performance.now();
    const hasGap = renewedAtMs - this.#renewedAtMs > clocks.deadNodeMs / 2;
    this.#renewedAtMs = renewedAtMs;
    this.#steadySinceMs = hasGap ? renewedAtMs : Math.min(steadySinceMs, renewedAtMs);
    if (!known) {
      log.warn({ mesh_id: meshId }, 'node was presumed dead, its agents have to reconnect');
      // They have been taken offline; they connect again and resume.
      for (const connection of registry.all()) connection.socket.close(CLOSE_CODES.GOING_AWAY, 'connect again');
    }
    if (renewedAtMs - this.#steadySinceMs >= clocks.deadNodeMs) await this.#sweep();
  }

  async #sweep(): Promise<void> {
    const { db, log, meshId, clocks } = this.#context;
    for (let more = true; more; ) {
      const swept = await db.system((tx) => sweepDeadNodes(tx, meshId, clocks.deadNodeMs));
      if (swept.agents > 0) log.info({ agents: swept.agents }, 'agents of dead nodes are offline');
      more = swept.more;
    }
  }
}

/** Agents of dead nodes that one transaction takes offline. */
const AGENTS_PER_SWEEP = 500;

/** A node that renews again after so long has lived through an outage. */
const OUTAGE_MS = 30_000;

/**
 * Writes or renews the node's row. All functions here need a system transaction.
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

/** Removes the row of a node that shuts down. */
export async function removeNode(tx: Tx, meshId: string): Promise<void> {
  await tx.query('DELETE FROM mesh_nodes WHERE mesh_id = $1', [meshId]);
}

/**
 * Removes other nodes than `meshId` that have not renewed for `deadAfterMs`, and takes connected agents without a living node offline.
 * @returns how many agents went offline; `more`: there may be further ones
 */
export async function sweepDeadNodes(
  tx: Tx,
  meshId: string,
  deadAfterMs: number,
): Promise<{ agents: number; more: boolean }> {
  const dead = `DELETE FROM mesh_nodes WHERE renewed_at < now() - $1 * interval '1 ms' AND mesh_id <> $2`;
  await tx.query(dead, [deadAfterMs, meshId]);
  const lost = await tx.query<Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'status' | 'drained'>>(
    `WITH lost AS (
       SELECT tenant_id, instance_id, agent_type, status, drained FROM agents a
        WHERE mesh_id IS NOT NULL AND deployment_mode = 'connected'
          AND NOT EXISTS (SELECT 1 FROM mesh_nodes n WHERE n.mesh_id = a.mesh_id)
        LIMIT ${AGENTS_PER_SWEEP} FOR UPDATE SKIP LOCKED)
     UPDATE agents a SET status = 'offline', mesh_id = NULL, connected_at = NULL FROM lost
      WHERE a.tenant_id = lost.tenant_id AND a.instance_id = lost.instance_id RETURNING lost.*`,
  );
  for (const agent of lost) if (agent.status !== 'offline') await recordHealth(tx, agent, 'offline');
  return { agents: lost.length, more: lost.length === AGENTS_PER_SWEEP };
}
