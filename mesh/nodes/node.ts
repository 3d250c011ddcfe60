import type { AgentRow } from '../../agents/agent-row.js';
import { recordHealth } from '../../agents/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { Db, Tx } from '../../db/pool.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { Registry } from '../connection/registry.js';
import type { MeshTimings } from '../connection/timings.js';

export interface MeshNodeOptions {
  db: Db;
  log: Logger;
  meshId: string;
  registry: Registry;
  timings: MeshTimings;
}

/** This process as a mesh node: it renews its row, and takes the agents of dead nodes offline. */
export class MeshNode {
  readonly #options: MeshNodeOptions;
  readonly #renewal: Loop;
  /** Since when this node's renewals have succeeded without a failure. */
  #steadySinceMs = 0;

  constructor(options: MeshNodeOptions) {
    this.#options = options;
    const { log, timings } = options;
    this.#renewal = new Loop({ name: 'renewal', intervalMs: timings.reconcileMs, work: () => this.#renew(), log });
  }

  /** Registers the node and starts to renew its row. */
  async start(): Promise<void> {
    const { db, meshId } = this.#options;
    await db.system((tx) => registerNode(tx, meshId));
    await this.#sweep();
    this.#steadySinceMs = performance.now();
    this.#renewal.start();
  }

  /** Removes the node's row. When the database is away, other nodes remove it later. */
  async stop(): Promise<void> {
    const { db, meshId, log } = this.#options;
    await this.#renewal.stop();
    await db
      .system((tx) => removeNode(tx, meshId))
      .catch((error: Error) => log.warn({ err: error.message }, 'node row could not be removed'));
  }

  async #renew(): Promise<void> {
    const { db, meshId, timings } = this.#options;
    const began = performance.now();
    let known = false;
    try {
      known = await db.system((tx) => renewNode(tx, meshId));
    } catch (error) {
      this.#steadySinceMs = Number.POSITIVE_INFINITY;
      throw error;
    }
    if (this.#steadySinceMs === Number.POSITIVE_INFINITY) this.#steadySinceMs = began;
    if (!known) await this.#registerAgain();
    // After an outage of the database every node looks dead until it has renewed, so only a node that renews steadily sweeps.
    if (performance.now() - this.#steadySinceMs >= timings.deadNodeMs) await this.#sweep();
  }

  /** Other nodes presumed this one dead and took its agents offline: the agents connect again and resume. */
  async #registerAgain(): Promise<void> {
    const { db, meshId, registry, log } = this.#options;
    log.warn({ mesh_id: meshId }, 'node was presumed dead, its agents have to reconnect');
    await db.system((tx) => registerNode(tx, meshId));
    for (const connection of registry.all()) connection.socket.close(CLOSE_CODES.GOING_AWAY, 'connect again');
  }

  async #sweep(): Promise<void> {
    const { db, log, timings } = this.#options;
    for (let more = true; more; ) {
      const swept = await db.system((tx) => sweepDeadNodes(tx, timings.deadNodeMs));
      if (swept.agents > 0) log.info({ agents: swept.agents }, 'agents of dead nodes are offline');
      more = swept.more;
    }
  }
}

/** Agents of dead nodes that one transaction takes offline. */
const AGENTS_PER_SWEEP = 500;

/** Registers this process as a node. All functions here need a system transaction. */
async function registerNode(tx: Tx, meshId: string): Promise<void> {
  await tx.query(
    `INSERT INTO mesh_nodes (mesh_id) VALUES ($1)
     ON CONFLICT (mesh_id) DO UPDATE SET renewed_at = now()`,
    [meshId],
  );
}

/** Renews the node's row. @returns false when another node has presumed it dead and removed the row */
async function renewNode(tx: Tx, meshId: string): Promise<boolean> {
  const rows = await tx.query('UPDATE mesh_nodes SET renewed_at = now() WHERE mesh_id = $1 RETURNING mesh_id', [
    meshId,
  ]);
  return rows.length > 0;
}

/** Removes the row of a node that shuts down. */
export async function removeNode(tx: Tx, meshId: string): Promise<void> {
  await tx.query('DELETE FROM mesh_nodes WHERE mesh_id = $1', [meshId]);
}

type LostAgent = Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'status'>;

/**
 * Removes nodes that have not renewed for `deadAfterMs`, and takes connected agents without a living node offline.
 * @returns how many agents went offline; `more`: there may be further ones
 */
export async function sweepDeadNodes(tx: Tx, deadAfterMs: number): Promise<{ agents: number; more: boolean }> {
  await tx.query(`DELETE FROM mesh_nodes WHERE renewed_at < now() - $1 * interval '1 ms'`, [deadAfterMs]);
  const lost = await tx.query<LostAgent>(
    `SELECT tenant_id, instance_id, agent_type, status FROM agents a
      WHERE mesh_id IS NOT NULL AND deployment_mode = 'connected'
        AND NOT EXISTS (SELECT 1 FROM mesh_nodes n WHERE n.mesh_id = a.mesh_id)
      LIMIT ${AGENTS_PER_SWEEP} FOR UPDATE SKIP LOCKED`,
  );
  for (const agent of lost) await takeOffline(tx, agent);
  return { agents: lost.length, more: lost.length === AGENTS_PER_SWEEP };
}

async function takeOffline(tx: Tx, agent: LostAgent): Promise<void> {
  await tx.query(
    `UPDATE agents SET status = 'offline', mesh_id = NULL, connected_at = NULL WHERE tenant_id = $1 AND instance_id = $2`,
    [agent.tenant_id, agent.instance_id],
  );
  if (agent.status !== 'offline') await recordHealth(tx, agent, 'offline');
}
