import { fstatSync } from 'node:fs';

const PARENT_CHECK_MS = 2_000;

/**
 * A signal that aborts when this process should end: SIGINT, SIGTERM, or, where another process started it and holds its
 * standard input, the end of that process. A terminal, a file or /dev/null as standard input mean nothing.
 */
export function untilToldToStop(): AbortSignal {
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  if (isHeldByParent()) {
    process.stdin.once('end', stop).once('close', stop).once('error', stop).resume();
    const parent = process.ppid;
    const check = setInterval(() => {
      if (process.ppid !== parent) stop();
    }, PARENT_CHECK_MS);
    controller.signal.addEventListener('abort', () => clearInterval(check));
  }
  return controller.signal;
}

/** Node gives a child with a piped standard input a socket. */
function isHeldByParent(): boolean {
  try {
    return fstatSync(0).isSocket();
  } catch {
    return false; // standard input is closed: nobody holds it
  }
}
