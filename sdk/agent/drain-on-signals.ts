const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** How the agents of this process leave, one entry each. */
const drains = new Set<() => Promise<void>>();

/**
 * At the first SIGTERM or SIGINT: drains all agents of the process, then lets the signal do what it would have done; a second one
 * does so at once. Where the process has listeners of its own, ending it is theirs.
 * @returns what takes the agent out
 */
export function drainOnSignals(drain: () => Promise<void>): () => void {
  if (drains.size === 0) for (const signal of SIGNALS) process.on(signal, drainAll);
  drains.add(drain);
  return () => {
    drains.delete(drain);
    if (drains.size === 0) ignoreSignals();
  };
}

function ignoreSignals(): void {
  for (const signal of SIGNALS) process.off(signal, drainAll);
}

async function drainAll(signal: NodeJS.Signals): Promise<void> {
  const all = [...drains];
  drains.clear(); // an agent that joins from now on listens again
  ignoreSignals();
  await Promise.allSettled(all.map((drain) => drain())); // why a drain failed is told to whoever watches the agent
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}
