import { Context } from '@temporalio/activity';
import { fetchAgentCard } from '../agents/agent-card.js';
import { countFailure, noteReached } from '../agents/agent-health.js';
import { type AgentToProbe, agentsToProbe, markSilentAgents, reapAgents } from '../agents/agent-watch.js';
import { WatchRound } from '../agents/watch-round.js';
import type { Db } from '../db/pool.js';
import type { Outbound } from '../http/outbound.js';
import { errorMessage, isTransient } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** Concurrent probes: an agent that does not answer takes up to 20 s. */
const PROBES = { limit: 16, perTenant: 4 };
/** After this time, in milliseconds, no further agent is probed in a round, so that agents that do not answer do not hold up its other tasks. */
const PROBING_MS = 60_000;

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
      const round = new WatchRound({
        log: deps.log,
        beat: () => context.heartbeat(),
        signal: context.cancellationSignal,
      });
      const agents = await agentsToProbe(deps.db);
      const probing = AbortSignal.timeout(PROBING_MS);
      return {
        probed: await round.forEach(agents, PROBES, (agent) => probe(deps, agent), probing),
        unhealthy: await markSilentAgents(deps.db, round),
        reaped: await reapAgents(deps.db, round),
      };
    },
  };
}
