import { CLOSE_CODES } from '../../contracts/errors.js';
import type { Db } from '../../db/pool.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { Registry } from '../connection/registry.js';
import type { MeshTimings } from '../connection/timings.js';
import { registerNode, removeNode, renewNode, sweepDeadNodes } from './mesh-nodes.js';

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
