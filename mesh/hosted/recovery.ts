import { setTimeout as sleep } from 'node:timers/promises';
import { noteReached } from '../../agents/agent-health.js';
import type { AgentRef } from '../../agents/agent-row.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Db } from '../../db/pool.js';
import { OutboundError } from '../../http/outbound.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { errorMessage } from '../../runtime/errors.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import type { HostedClient } from './call.js';

/** Pauses before the attempts, in milliseconds; the last one repeats. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000] as const;
/** After this long the agent is left to the periodic check of all agents, every 30 s (agents/agent-watch.ts). */
const GIVE_UP_MS = 2 * LIMITS.heartbeatIntervalMs;
const ATTEMPT_TIMEOUT_MS = 5_000;
const AGENTS_MAX = 1_000;

type UnreachableAgent = Pick<OpenDispatch, 'tenant_id' | 'instance_id' | 'public_url'>;

export interface RecoveryOptions extends Pick<HostedClient, 'outbound'> {
  db: Db;
  /** Sends queued messages to an agent that may have got room. Never throws. */
  fill(agent: AgentRef): void;
  log: Pick<Logger, 'info' | 'warn'>;
  /** Ends the attempts, at the end of the process. */
  closing: AbortSignal;
}

/**
 * Tries hosted agents that refused or broke connections, as during a restart, every few seconds. An agent is routed to again as soon as a
 * connection opens; its messages wait meanwhile.
 */
export class HostedRecovery {
  readonly #options: RecoveryOptions;
  readonly #agents = new Set<string>();

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** Tries an agent until it can be reached. Beyond `AGENTS_MAX` agents, the periodic check does that. */
  begin(agent: UnreachableAgent): void {
    const key = agentKeyOf(agent);
    if (this.#agents.has(key) || this.#agents.size >= AGENTS_MAX) return;
    this.#agents.add(key);
    void this.#recover(agent).finally(() => this.#agents.delete(key));
  }

  async #recover(agent: UnreachableAgent): Promise<void> {
    const { closing, log } = this.#options;
    const giveUpAt = performance.now() + GIVE_UP_MS;
    try {
      for (let attempt = 0; performance.now() < giveUpAt; attempt += 1) {
        await sleep(PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)], undefined, { signal: closing, ref: false });
        if (await this.#isReachable(agent)) return await this.#reached(agent);
      }
    } catch (error) {
      if (!closing.aborted)
        log.warn({ err: errorMessage(error), instance_id: agent.instance_id }, 'hosted agent could not be tried');
    }
  }

  /** Whether a connection opens; any answer will do. */
  async #isReachable({ public_url }: UnreachableAgent): Promise<boolean> {
    const { outbound, closing } = this.#options;
    try {
      const url = new URL('/.well-known/agent-card.json', public_url ?? '').href;
      await outbound.request(url, { timeoutMs: ATTEMPT_TIMEOUT_MS, signal: closing });
      return true;
    } catch (error) {
      if (error instanceof OutboundError && !closing.aborted) return error.requestSent;
      throw error;
    }
  }

  async #reached({ tenant_id, instance_id }: UnreachableAgent): Promise<void> {
    const { db, fill, log } = this.#options;
    if (!(await noteReached(db, { tenant_id, instance_id }))) return;
    log.info({ tenant_id, instance_id }, 'hosted agent can be reached again');
    fill({ tenant_id, instance_id });
  }
}
