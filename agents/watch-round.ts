import { errorMessage, isTenantBusy, isTransient } from '../runtime/errors.js';
import { FairSemaphore } from '../runtime/fair-semaphore.js';
import type { Logger } from '../runtime/logger.js';
import type { AgentRef } from './agent-row.js';

/** How much of a round is done at once, in all and for one tenant. */
interface AtOnce {
  limit: number;
  perTenant: number;
}

interface RoundOptions {
  log: Logger;
  /** Called before each agent. */
  beat(): void;
  /** Aborted: no further agent is begun. */
  signal: AbortSignal;
}

/**
 * One round over agents of all tenants, in turns of the tenants. An agent whose work fails is left to the next round. So are the other agents
 * of a busy tenant, because each would wait for its turn at the database.
 */
export class WatchRound {
  readonly #options: RoundOptions;
  readonly #busy = new Set<string>();

  constructor(options: RoundOptions) {
    this.#options = options;
  }

  /**
   * @param until aborted: no further agent is begun
   * @returns how many were done
   * @throws PlatformError SERVICE_UNAVAILABLE when the database is away
   */
  async forEach<Agent extends AgentRef>(
    agents: readonly Agent[],
    { limit, perTenant }: AtOnce,
    work: (agent: Agent) => Promise<void>,
    until: AbortSignal = this.#options.signal,
  ): Promise<number> {
    const bounds = { limit, perKey: perTenant, waitingMax: agents.length };
    const turns = new FairSemaphore({ ...bounds, refusal: () => new Error('more agents than there are') });
    const away = new AbortController();
    const over = AbortSignal.any([this.#options.signal, until, away.signal]);
    const visit = async (agent: Agent): Promise<boolean> => {
      if (over.aborted || this.#busy.has(agent.tenant_id)) return false;
      this.#options.beat();
      try {
        await work(agent);
        return true;
      } catch (error) {
        if (isTransient(error) && !isTenantBusy(error)) away.abort(error);
        this.#note(agent, error);
        return false;
      }
    };
    const done = await Promise.all(agents.map((agent) => turns.run(agent.tenant_id, () => visit(agent))));
    if (away.signal.aborted) throw away.signal.reason;
    return done.filter(Boolean).length;
  }

  #note({ tenant_id, instance_id }: AgentRef, error: unknown): void {
    if (isTenantBusy(error)) this.#busy.add(tenant_id);
    this.#options.log.warn({ err: errorMessage(error), tenant_id, instance_id }, 'an agent is left to the next round');
  }
}
