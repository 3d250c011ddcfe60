import { Context } from '@temporalio/activity';
import { fetchAgentCard } from '../agents/agent-card.js';
import { countFailure, noteReached } from '../agents/agent-failures.js';
import { type AgentToProbe, agentsToProbe, markSilentAgents, reapAgents } from '../agents/agent-watch.js';
import type { Db } from '../db/pool.js';
import type { Outbound } from '../http/outbound.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import type { Sessions } from '../sessions/sessions.js';

/** The watch over the agents, run by a Temporal Schedule. */
export interface WatchActivities {
  watchAgents(): Promise<{ probed: number; unhealthy: number; reaped: number }>;
}

/** Cards asked for at once. */
const PROBES_AT_ONCE = 16;

/** What the watch works with. */
export interface WatchDeps {
  db: Db;
  outbound: Outbound;
  sessions: Pick<Sessions, 'releaseAgent'>;
  log: Logger;
}

async function probe(deps: WatchDeps, agent: AgentToProbe): Promise<void> {
  try {
    await fetchAgentCard(deps.outbound, agent.public_url);
    await noteReached(deps.db, agent);
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE') throw error;
    deps.log.info(
      { instance_id: agent.instance_id, err: errorMessage(error) },
      'a hosted agent does not show its card',
    );
    await countFailure(deps.db, agent, null);
  }
}

/** The watch: asks silent hosted agents for their card, marks the silent as unhealthy, reaps the long gone. */
export function createWatchActivities(deps: WatchDeps): WatchActivities {
  return {
    watchAgents: async () => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const context = Context.current();
      const queue = await agentsToProbe(deps.db);
      const probed = queue.length;
      const work = Array.from({ length: Math.min(PROBES_AT_ONCE, probed) }, async () => {
        for (let agent = queue.shift(); agent; agent = queue.shift()) {
          if (context.cancellationSignal.aborted) return;
          context.heartbeat();
          await probe(deps, agent);
        }
      });
      await Promise.all(work);
      return {
        probed,
        unhealthy: await markSilentAgents(deps.db),
        reaped: await reapAgents(deps.db, deps.sessions.releaseAgent),
      };
    },
  };
}
