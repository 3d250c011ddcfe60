const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * At the first SIGTERM or SIGINT: drains, then lets the signal do what it would have done; a second one does so at once. Where the
 * process has listeners of its own, ending it is theirs.
 * @returns what takes the listeners away
 */
export function drainOnSignals(drain: () => Promise<void>): () => void {
  const remove = () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    remove();
    const end = () => {
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    };
    drain().then(end, end); // why a drain failed is told to whoever watches the agent
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return remove;
}
