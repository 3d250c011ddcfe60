import type { Db } from '../../db/pool.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';

const EVERY_MS = 2_000;
/** A node renews its row every two seconds; one that has missed two renewals gets nothing new. */
const LIVING = `SELECT mesh_id FROM mesh_nodes WHERE renewed_at > now() - interval '5 s'`;

/** The mesh nodes that are alive, read every two seconds once somebody has asked. */
export class LivingNodes {
  readonly #loop: Loop;
  #isReading = false;
  #nodes: string[] = [];
  #next = 0;

  constructor(db: Db, log: Logger) {
    const work = async (): Promise<void> => {
      const rows = await db.system((tx) => tx.query<{ mesh_id: string }>(LIVING));
      this.#nodes = rows.map(({ mesh_id }) => mesh_id);
    };
    this.#loop = new Loop({ name: 'living nodes', intervalMs: EVERY_MS, work, log, immediate: true });
  }

  /** One node after the other; null when none is known. */
  any(): string | null {
    if (!this.#isReading) this.#loop.start();
    this.#isReading = true;
    this.#next += 1;
    return this.#nodes[this.#next % this.#nodes.length] ?? null;
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }
}
