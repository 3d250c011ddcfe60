import { LRUCache } from 'lru-cache';
import { countFailure, countSuccess } from '../../agents/agent-health.js';
import { type AgentRef, agentKeyOf } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { OpenDispatch } from '../dispatch/dispatches.js';

/** The row of a healthy hosted agent is read and written at most once in this time. */
const SUCCESS_INTERVAL_MS = 10_000;
const AGENTS_MAX = 10_000;

type DispatchedAgent = AgentRef & Pick<OpenDispatch, 'deployment_mode'>;

/** Counts successes and failures of agents in the database. Never throws: a lost count only delays a change of status. */
export class AgentHealth {
  readonly #db: Db;
  readonly #log: Pick<Logger, 'warn'>;
  /** When a hosted agent's last success was counted. */
  readonly #countedAtMs = new LRUCache<string, number>({ max: AGENTS_MAX });
  /** Connected agents that have failed here since their last success. */
  readonly #failing = new LRUCache<string, true>({ max: AGENTS_MAX });

  constructor(db: Db, log: Pick<Logger, 'warn'>) {
    this.#db = db;
    this.#log = log;
  }

  /** An agent answered. For a hosted agent this is also the sign of life; a connected agent sends heartbeats. */
  async succeeded(agent: DispatchedAgent): Promise<void> {
    const isDue = agent.deployment_mode === 'hosted' ? this.#isDue(agent) : this.#failing.delete(agentKeyOf(agent));
    if (isDue) await this.#report(agent, () => countSuccess(this.#db, agent));
  }

  /**
   * @param epoch of the connection that failed
   * @returns whether the agent became `unhealthy`
   */
  async failed(agent: DispatchedAgent, epoch: number): Promise<boolean> {
    const key = agentKeyOf(agent);
    this.#countedAtMs.delete(key);
    if (agent.deployment_mode === 'connected') this.#failing.set(key, true);
    return (await this.#report(agent, () => countFailure(this.#db, agent, epoch))) ?? false;
  }

  #isDue(agent: DispatchedAgent): boolean {
    const key = agentKeyOf(agent);
    const now = performance.now();
    if (now - (this.#countedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < SUCCESS_INTERVAL_MS) return false;
    this.#countedAtMs.set(key, now);
    return true;
  }

  async #report<T>({ instance_id }: AgentRef, count: () => Promise<T>): Promise<T | undefined> {
    try {
      return await count();
    } catch (error) {
      this.#log.warn({ err: errorMessage(error), instance_id }, 'agent health could not be recorded');
      return undefined;
    }
  }
}
