import { countFailure, countSuccess } from '../../agents/agent-health.js';
import type { AgentRef } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

/** A healthy hosted agent's row is looked at this often at most, however many dispatches it answers. */
const QUIET_MS = 10_000;
const REMEMBERED_MAX = 10_000;

const keyOf = (agent: AgentRef): string => `${agent.tenant_id}:${agent.instance_id}`;

/**
 * Reports to the database how dispatches to agents fare, hosted and connected ones alike. Never throws: a lost count only delays a
 * status.
 */
export class AgentHealth {
  readonly #db: Db;
  readonly #log: Pick<Logger, 'warn'>;
  /** When an agent was last known to be well. */
  readonly #well = new Map<string, number>();
  /** Agents that have failed here since their last success. */
  readonly #failing = new Set<string>();

  constructor(db: Db, log: Pick<Logger, 'warn'>) {
    this.#db = db;
    this.#log = log;
  }

  /** A hosted agent answered, which is its sign of life as well. */
  async succeeded(agent: AgentRef): Promise<void> {
    const key = keyOf(agent);
    const now = performance.now();
    if (now - (this.#well.get(key) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    if (this.#well.size >= REMEMBERED_MAX) this.#well.clear();
    this.#well.set(key, now);
    await this.#report(agent, () => countSuccess(this.#db, agent));
  }

  /** A connected agent answered: only what failed here before has to be forgotten, since its heartbeats tell that it lives. */
  async answered(agent: AgentRef): Promise<void> {
    if (!this.#failing.delete(keyOf(agent))) return;
    await this.#report(agent, () => countSuccess(this.#db, agent));
  }

  /**
   * @param epoch of the connection that failed
   * @returns whether that made the agent `unhealthy`
   */
  async failed(agent: AgentRef, epoch: number): Promise<boolean> {
    const key = keyOf(agent);
    this.#well.delete(key);
    if (this.#failing.size >= REMEMBERED_MAX) this.#failing.clear();
    this.#failing.add(key);
    return (await this.#report(agent, () => countFailure(this.#db, agent, epoch))) ?? false;
  }

  async #report<T>({ instance_id }: AgentRef, count: () => Promise<T>): Promise<T | undefined> {
    try {
      return await count();
    } catch (error) {
      this.#log.warn({ err: errorMessage(error), instance_id }, 'health of an agent not recorded');
      return undefined;
    }
  }
}
