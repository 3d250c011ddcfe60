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

/** Opens a stream that begins after `position`; resolves when it is open. */
export type OpenStream = (position: StreamPosition) => Promise<AsyncIterable<NumberedEvent>>;

/** Longest time without an event or an open connection before a stream is given up. */
const GIVE_UP_MS = 120_000;
/** A connection that was open for so long counts as the platform's presence, also where nothing was told: it says so every 15 s. */
const PRESENCE_MS = 15_000;

/**
 * Follows a task over as many connections as it takes, to its final event.
 * @param firstPosition where to begin: an empty one, or where an earlier stream stopped
 * @throws ApiError for what a repeat does not change; UnreachableError after two minutes without the platform
 */
export async function* resumedStream(
  open: OpenStream,
  firstPosition: StreamPosition,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  const position = { ...firstPosition };
  const backoff = new Backoff();
  for (let heardAtMs = Date.now(); ; ) {
    let failure: unknown = new UnreachableError('/send', new Error('the stream ended before its task'));
    let settled = false;
    let openedAtMs = Number.POSITIVE_INFINITY;
    try {
      const events = await open(position);
      openedAtMs = Date.now();
      for await (const { id, event } of events) {
        heardAtMs = Date.now();
        backoff.reset();
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
    if (Date.now() - openedAtMs > PRESENCE_MS) {
      heardAtMs = Date.now();
      backoff.reset();
    }
    if (Date.now() - heardAtMs > GIVE_UP_MS) throw failure;
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
