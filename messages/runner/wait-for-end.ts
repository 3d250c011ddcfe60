import type { DispatchEnd } from '../dispatch/dispatches.js';

/** The activity that waits for the end of a dispatch. `signal` ends the wait, not the dispatch. */
export interface WaitContext {
  heartbeat(): void;
  signal: AbortSignal;
}

/** Waits for an end with a heartbeat at the start and every `heartbeatMs`. @throws the reason of `signal` once it is aborted */
export async function waitFor(
  end: Promise<DispatchEnd>,
  { heartbeat, signal }: WaitContext,
  heartbeatMs: number,
): Promise<DispatchEnd> {
  signal.throwIfAborted();
  heartbeat();
  const timer = setInterval(heartbeat, heartbeatMs);
  let leave: () => void = () => undefined;
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([end, left]);
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', leave);
  }
}
