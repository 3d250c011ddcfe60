/** Waits for `work`, but not beyond the signal; what comes of it then is nobody's business. @throws the signal's reason */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const done = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true, signal: done.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    done.abort();
  }
}
