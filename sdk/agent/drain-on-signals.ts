const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** The drain function of each agent in this process. */
const drains = new Set<() => Promise<void>>();

/**
 * On the first SIGTERM or SIGINT, drains all agents of the process and then raises the signal again; a second signal ends the process at
 * once. When the process has listeners of its own for the signal, they decide when it exits.
 * @returns a function that removes the agent
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
  drains.clear(); // an agent that starts from now on installs the listeners again
  ignoreSignals();
  await Promise.allSettled(all.map((drain) => drain())); // `closed` of the agent reports why a drain failed
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}
