import type { StreamEvent } from '../../../contracts/a2a/a2a.js';
import { RPC_ERRORS } from '../../../contracts/errors.js';
import { Backoff } from '../../backoff.js';
import { ApiError, isTransient, UnreachableError } from '../api/errors.js';
import { pause } from '../api/retries.js';
import type { NumberedEvent } from './rpc.js';

/** The position of a stream, after which a new connection continues. */
export interface StreamPosition {
  /** Empty before the first event. */
  taskId: string;
  /** Empty when the stream has no event ids. */
  lastEventId: string;
}

/** Opens a stream that continues after `position`; resolves when it is open. */
export type OpenStream = (position: StreamPosition) => Promise<AsyncIterable<NumberedEvent>>;

/** Time without an event or a stable connection after which the stream fails. */
const RECONNECT_TIMEOUT_MS = 120_000;
/** A connection that was open for longer proves that the platform is up, even without events: it sends a keep-alive every 15 s. */
const STABLE_MS = 15_000;

/**
 * Streams a task to its final event, over as many connections as necessary.
 * @param firstPosition the start of the stream: empty, or the end of an earlier stream
 * @throws ApiError for a permanent failure; UnreachableError after two minutes without the platform
 */
export async function* resumedStream(
  open: OpenStream,
  firstPosition: StreamPosition,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  const position = { ...firstPosition };
  const backoff = new Backoff();
  for (let lastSeenAtMs = Date.now(); ; ) {
    let failure: unknown = new UnreachableError('/send', new Error('the stream ended before its task'));
    let settled = false;
    let openedAtMs = Number.POSITIVE_INFINITY;
    try {
      const events = await open(position);
      openedAtMs = Date.now();
      for await (const { id, event } of events) {
        lastSeenAtMs = Date.now();
        backoff.reset();
        if (id !== '') position.lastEventId = id;
        position.taskId = taskIdOf(event) || position.taskId;
        settled = isSettled(event);
        yield event;
        if (event.kind === 'status-update' && event.final) return;
      }
      if (settled) return;
    } catch (error) {
      if (signal?.aborted || !isRetryable(error)) throw error;
      failure = error;
    }
    if (Date.now() - openedAtMs > STABLE_MS) {
      lastSeenAtMs = Date.now();
      backoff.reset();
    }
    if (Date.now() - lastSeenAtMs > RECONNECT_TIMEOUT_MS) throw failure;
    await pause(backoff.next(), signal);
  }
}

function taskIdOf(event: StreamEvent): string {
  return event.kind === 'task' ? event.id : event.taskId;
}

/** Whether a stream may end after this event: the task has ended, or waits for a human. */
function isSettled(event: StreamEvent): boolean {
  if (event.kind === 'task') return !['submitted', 'working', 'unknown'].includes(event.status.state);
  return event.kind === 'status-update' && event.final;
}

/** Whether the task continues although the stream broke; in the middle of a stream, -32603 means so too. */
function isRetryable(error: unknown): boolean {
  return isTransient(error) || (error instanceof ApiError && error.rpcCode === RPC_ERRORS.INTERNAL);
}
