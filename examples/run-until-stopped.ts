import { fstatSync } from 'node:fs';

const PARENT_CHECK_MS = 2_000;

/**
 * Runs the program of an agent, which ends when it should stop, and exits: with 0 after that, with 1 after an error, which it prints.
 * @param name what the error begins with
 */
export function runUntilStopped(name: string, main: (stopped: AbortSignal) => Promise<void>): void {
  const stopped = stopSignal();
  main(stopped).then(
    () => process.exit(0),
    (error: unknown) => {
      if (stopped.aborted) process.exit(0);
      process.stderr.write(`${name}: ${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}

/**
 * Aborts when this process should stop: on SIGINT, on SIGTERM, and when a parent process that holds its standard input exits. A terminal, a
 * file or /dev/null as standard input is ignored.
 */
function stopSignal(): AbortSignal {
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
