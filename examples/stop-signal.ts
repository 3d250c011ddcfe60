import { fstatSync } from 'node:fs';

const PARENT_CHECK_MS = 2_000;

/**
 * Aborts when this process should stop: on SIGINT, on SIGTERM, and when a parent process that holds its standard input exits. A terminal, a
 * file or /dev/null as standard input is ignored.
 */
export function stopSignal(): AbortSignal {
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

/** Whether standard input is a pipe from the parent process, which Node.js creates as a socket. */
function isHeldByParent(): boolean {
  try {
    return fstatSync(0).isSocket();
  } catch {
    return false; // standard input is closed
  }
}
