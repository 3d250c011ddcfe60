/**
 * Runs work once at a time. Calls during a run share the run that follows, so that each sees what was there before it was called, and any
 * number of callers cost what one does.
 */
export function shareNext<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | null = null;
  let next: Promise<T> | null = null;
  const start = (): Promise<T> => {
    next = null;
    const run = work();
    const settled = run.then(
      () => undefined,
      () => undefined,
    );
    running = settled;
    void settled.then(() => {
      if (running === settled && !next) running = null;
    });
    return run;
  };
  return () => {
    if (!running) return start();
    next ??= running.then(start);
    return next;
  };
}
