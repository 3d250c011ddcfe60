/**
 * The outcome of work, or the signal's reason as soon as it is aborted: for a caller that does not wait for the end of what it gave up. The
 * work itself has to heed the signal; what comes of it after that is ignored.
 */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
