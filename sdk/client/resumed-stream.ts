import type { StreamEvent } from '../../contracts/a2a.js';
import { RPC_ERRORS } from '../../contracts/errors.js';
import { Backoff } from '../backoff.js';
import { ApiError, isTransient, UnreachableError } from './errors.js';
import { pause } from './platform-api.js';
import type { NumberedEvent } from './rpc.js';

/** Where a stream stands: what a new connection continues after. */
export interface StreamPosition {
  /** Empty before the first event. */
  taskId: string;
  /** Empty where the stream named none. */
  lastEventId: string;
}

/** Opens a stream that begins after `position`. `onKeepAlive` is called for each keep-alive comment. */
export type OpenStream = (position: StreamPosition, onKeepAlive: () => void) => AsyncIterable<NumberedEvent>;

/** How long a broken connection is tried again before a stream is given up. */
const GIVE_UP_MS = 120_000;

/**
 * Follows a task over as many connections as it takes, to its final event. A connection that breaks is opened again with back-off for
 * up to two minutes, counted from the break. Silence does not count: a task may say nothing for hours.
 * @param firstPosition where to begin: an empty one, or where an earlier stream stopped
 * @throws ApiError for what a repeat does not change; what the last attempt failed with after two minutes without a sign of life
 */
export async function* resumedStream(
  open: OpenStream,
  firstPosition: StreamPosition,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  const position = { ...firstPosition };
  const backoff = new Backoff();
  let brokenAtMs: number | null = null;
  const onAlive = () => {
    brokenAtMs = null;
    backoff.reset();
  };
  for (;;) {
    let failure: unknown = new UnreachableError('/send', new Error('the stream ended before its task'));
    let settled = false;
    try {
      for await (const { id, event } of open(position, onAlive)) {
        onAlive();
        if (id !== '') position.lastEventId = id;
        position.taskId = taskIdOf(event) || position.taskId;
        settled = isSettled(event);
        yield event;
        if (event.kind === 'status-update' && event.final) return;
      }
      if (settled) return;
    } catch (error) {
      if (signal?.aborted || !mayPass(error)) throw error;
      failure = error;
    }
    brokenAtMs ??= performance.now();
    if (performance.now() - brokenAtMs > GIVE_UP_MS) throw failure;
    await pause(backoff.next(), signal);
  }
}

function taskIdOf(event: StreamEvent): string {
  return event.kind === 'task' ? event.id : event.taskId;
}

/** A stream that ends after it is whole: the task is over, or waits for somebody. */
function isSettled(event: StreamEvent): boolean {
  if (event.kind === 'task') return !['submitted', 'working', 'unknown'].includes(event.status.state);
  return event.kind === 'status-update' && event.final;
}

/** The stream broke, and the task goes on: -32603 says so in the middle of a stream. */
function mayPass(error: unknown): boolean {
  return isTransient(error) || (error instanceof ApiError && error.rpcCode === RPC_ERRORS.INTERNAL);
}
