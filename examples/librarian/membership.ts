import { setTimeout as delay } from 'node:timers/promises';
import { AgentRegisterResponse } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentLog } from '../../sdk/index.js';
import { type FleetClient, isTransient } from '../../sdk/index.js';
import type { Registered } from './platform-token.js';

export interface Member {
  agentType: string;
  instanceId: string;
  publicUrl: string;
  maxConcurrentSessions: number;
}

const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/**
 * Keeps a hosted agent in the fleet: registers, then a heartbeat every 30 s. After a heartbeat that failed it registers again,
 * because a platform that was away may have forgotten it. Ends when `signal` aborts.
 * @param onRegistered learns which tokens to trust, before the first dispatch
 * @throws ApiError when the platform refuses the agent
 */
export async function stayMember(
  client: FleetClient,
  member: Member,
  options: { signal: AbortSignal; log: AgentLog; onRegistered(registered: Registered): void; heartbeatMs?: number },
): Promise<void> {
  let registered = false;
  let failures = 0;
  while (!options.signal.aborted) {
    try {
      if (registered) await client.post('/agents/heartbeat', { instance_id: member.instanceId });
      else {
        options.onRegistered(await register(client, member));
        options.log.info({ instance_id: member.instanceId, public_url: member.publicUrl }, 'registered');
      }
      registered = true;
      failures = 0;
    } catch (error) {
      if (!registered && !isTransient(error)) throw error;
      registered = false;
      options.log.warn({ error: error instanceof Error ? error.message : String(error) }, 'platform not reachable');
      failures += 1;
    }
    const retryMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (failures - 1));
    const waitMs = registered ? (options.heartbeatMs ?? LIMITS.heartbeatIntervalMs) : retryMs;
    await delay(waitMs, undefined, { signal: options.signal }).catch(() => undefined); // the loop's condition sees it
  }
}

async function register(client: FleetClient, member: Member): Promise<Registered> {
  return client.post(
    '/agents/register',
    {
      agent_type: member.agentType,
      instance_id: member.instanceId,
      deployment_mode: 'hosted',
      public_url: member.publicUrl,
      max_concurrent_sessions: member.maxConcurrentSessions,
    },
    AgentRegisterResponse,
  );
}
