import { countHostedFailure, countHostedSuccess, type HostedAgent } from '../db/hosted-failures.js';
import type { Db } from '../db/pool.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** A healthy agent's row is looked at this often at most, however many dispatches it answers. */
const QUIET_MS = 10_000;
const REMEMBERED_MAX = 10_000;

/** Reports to the database how dispatches to hosted agents fare. Never throws: a lost count only delays a status. */
export class HostedHealth {
  readonly #db: Db;
  readonly #log: Pick<Logger, 'warn'>;
  /** When an agent was last known to be well, by tenant and instance. */
  readonly #well = new Map<string, number>();

  constructor(db: Db, log: Pick<Logger, 'warn'>) {
    this.#db = db;
    this.#log = log;
  }

  async succeeded(agent: HostedAgent): Promise<void> {
    const key = `${agent.tenant_id}:${agent.instance_id}`;
    const now = performance.now();
    if (now - (this.#well.get(key) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    if (this.#well.size >= REMEMBERED_MAX) this.#well.clear();
    this.#well.set(key, now);
    await this.#report(agent, countHostedSuccess);
  }

  async failed(agent: HostedAgent): Promise<void> {
    this.#well.delete(`${agent.tenant_id}:${agent.instance_id}`);
    await this.#report(agent, countHostedFailure);
  }

  async #report(agent: HostedAgent, count: typeof countHostedFailure): Promise<void> {
    try {
      await count(this.#db, agent);
    } catch (error) {
      this.#log.warn(
        { err: errorMessage(error), instance_id: agent.instance_id },
        'health of a hosted agent not recorded',
      );
    }
  }
}
