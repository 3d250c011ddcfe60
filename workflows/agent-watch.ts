import { watch } from './stubs.js';

/** One round of the watch over the agents: probes hosted ones, marks the silent as unhealthy, reaps the long gone. */
export async function agentWatch(): Promise<{ probed: number; unhealthy: number; reaped: number }> {
  return watch.watchAgents();
}
