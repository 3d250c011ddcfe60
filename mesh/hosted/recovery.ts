import { setTimeout as sleep } from 'node:timers/promises';
import { noteReached } from '../../agents/agent-health.js';
import { agentKeyOf } from '../../agents/agent-row.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Db } from '../../db/pool.js';
import { type Outbound, OutboundError } from '../../http/outbound.js';
import type { Dispatches, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

/** Pauses before the tries, in milliseconds: short at first, then the last one over again. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000] as const;
/** After this long the agent is left to the watch over all agents, which asks every 30 s (db/agent-watch.ts). */
const GIVE_UP_MS = 2 * LIMITS.heartbeatIntervalMs;
const TRY_TIMEOUT_MS = 5_000;
const AGENTS_MAX = 1_000;

type Refusing = Pick<OpenDispatch, 'tenant_id' | 'instance_id' | 'public_url'>;

export interface RecoveryOptions {
  db: Db;
  dispatches: Pick<Dispatches, 'agentJoined'>;
  outbound: Pick<Outbound, 'request'>;
  log: Pick<Logger, 'info' | 'warn'>;
  /** Ends the trying, at the end of the process. */
  closing: AbortSignal;
}

/**
 * Brings hosted agents back that refused or broke their connections, as a restart does: they are tried every few seconds, and routed to again as
 * soon as a connection opens. Messages wait for them meanwhile.
 */
export class HostedRecovery {
  readonly #options: RecoveryOptions;
  readonly #trying = new Set<string>();

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** Tries an agent until it can be reached; beyond `AGENTS_MAX` at once it is left to the watch. */
  begin(agent: Refusing): void {
    const key = agentKeyOf(agent);
    if (this.#trying.has(key) || this.#trying.size >= AGENTS_MAX) return;
    this.#trying.add(key);
    void this.#recover(agent).finally(() => this.#trying.delete(key));
  }

  async #recover(agent: Refusing): Promise<void> {
    const { closing, log } = this.#options;
    const { instance_id } = agent;
    const giveUpAt = performance.now() + GIVE_UP_MS;
    try {
      for (let tries = 0; performance.now() < giveUpAt; tries += 1) {
        await sleep(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)], undefined, { signal: closing, ref: false });
        if (await this.#isReachable(agent)) return await this.#welcome(agent);
      }
    } catch (error) {
      if (!closing.aborted) log.warn({ err: errorMessage(error), instance_id }, 'a hosted agent could not be tried');
    }
  }

  /** A connection that opens shows that it is there, whatever it answers. */
  async #isReachable({ public_url }: Refusing): Promise<boolean> {
    const { outbound, closing } = this.#options;
    try {
      const url = new URL('/.well-known/agent-card.json', public_url ?? '').href;
      await outbound.request(url, { timeoutMs: TRY_TIMEOUT_MS, signal: closing });
      return true;
    } catch (error) {
      if (error instanceof OutboundError && !closing.aborted) return error.requestSent;
      throw error;
    }
  }

  async #welcome({ tenant_id, instance_id }: Refusing): Promise<void> {
    const { db, dispatches, log } = this.#options;
    const agent_type = await noteReached(db, { tenant_id, instance_id });
    if (agent_type === null) return;
    log.info({ tenant_id, instance_id }, 'a hosted agent can be reached again');
    await dispatches.agentJoined(tenant_id, { agent_type, instance_id });
  }
}
