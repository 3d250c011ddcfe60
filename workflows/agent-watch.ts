import { watch } from './stubs.js';

/** One round of the agent watch; see `createWatchActivities`. */
export async function agentWatch(): Promise<{ probed: number; unhealthy: number; reaped: number }> {
  return watch.watchAgents();
}
