import { Context } from '@temporalio/activity';
import pLimit from 'p-limit';
import { fetchAgentCard } from '../agents/agent-card.js';
import { countFailure, noteReached } from '../agents/agent-health.js';
import { type AgentToProbe, agentsToProbe, markSilentAgents, reapAgents } from '../agents/agent-watch.js';
import type { Db } from '../db/pool.js';
import type { Outbound } from '../http/outbound.js';
import { errorMessage, isTransient } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** The number of concurrent probes. */
const CONCURRENT_PROBES = 16;

/** The dependencies of the watch. */
export interface WatchDeps {
  db: Db;
  outbound: Outbound;
  log: Logger;
}

async function probe(deps: WatchDeps, agent: AgentToProbe): Promise<void> {
  try {
    await fetchAgentCard(deps.outbound, agent.public_url);
    await noteReached(deps.db, agent);
  } catch (error) {
    if (isTransient(error)) throw error;
    deps.log.info({ instance_id: agent.instance_id, err: errorMessage(error) }, 'probe of a hosted agent failed');
    await countFailure(deps.db, agent, null);
  }
}

export type WatchActivities = ReturnType<typeof createWatchActivities>;

/**
 * The agent watch, which a Temporal Schedule runs: it probes silent hosted agents, marks silent agents as unhealthy and deregisters agents
 * that have been silent for long.
 */
export function createWatchActivities(deps: WatchDeps) {
  return {
    watchAgents: async () => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const context = Context.current();
      const agents = await agentsToProbe(deps.db);
      const limit = pLimit(CONCURRENT_PROBES);
      const probes = limit.map(agents, async (agent) => {
        if (context.cancellationSignal.aborted) return;
        context.heartbeat();
        await probe(deps, agent);
      });
      await probes.finally(() => limit.clearQueue()); // a failed probe ends the round
      return {
        probed: agents.length,
        unhealthy: await markSilentAgents(deps.db),
        reaped: await reapAgents(deps.db),
      };
    },
  };
}
