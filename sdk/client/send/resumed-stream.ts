import { RPC_ERRORS } from '../../../contracts/errors.js';
import { ApiError, isTransient, UnreachableError } from '../api/errors.js';
import { Reconnection } from '../api/reconnection.js';
import type { NumberedEvent } from './rpc.js';
import type { StreamEvent } from './sent-task.js';

/** The position of a stream, after which a new connection continues. */
export interface StreamPosition {
  /** Empty before the first event. */
  taskId: string;
  /** Empty when the stream has no event ids. */
  lastEventId: string;
}

/** Opens a stream that continues after `position`; resolves when it is open. */
export type OpenStream = (position: StreamPosition) => Promise<AsyncIterable<NumberedEvent>>;

/**
 * Streams a task to its final event, over as many connections as necessary.
 * @param position the start of the stream: empty, or the end of an earlier stream. It moves with the events
 * @throws ApiError for a permanent failure; UnreachableError after two minutes without the platform
 */
export async function* resumedStream(
  open: OpenStream,
  position: StreamPosition,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  const reconnection = new Reconnection();
  for (;;) {
    let failure: unknown = new UnreachableError('/send', new Error('the stream ended before its task'));
    let settled = false;
    try {
      const events = await open(position);
      reconnection.opened();
      for await (const { id, event } of events) {
        reconnection.seen();
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
    await reconnection.wait(failure, signal);
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
