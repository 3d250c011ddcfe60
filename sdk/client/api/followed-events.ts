import { readEvents } from '../send/event-reader.js';
import type { Answer } from '../transport/transport.js';
import { isTransient, UnreachableError } from './errors.js';
import { Reconnection } from './reconnection.js';

/** Four missed keep-alive comments: the connection is lost. */
export const STREAM_SILENCE_MS = 60_000;
/** The event with which the platform ends a stream that can be continued. */
const CLOSED = 'stream.closed';

/**
 * The data of server-sent events, which a broken connection does not end: another one continues after the last event, without a gap or a
 * repeat. What happened between two connections before the first event is not seen.
 * @param open opens the stream after an event; after none where the id is empty
 * @throws ApiError for a permanent failure, `NOT_FOUND` where the last event is no longer kept; UnreachableError after two minutes without
 *   the platform; the signal's reason
 */
export async function* followedEvents(
  open: (lastEventId: string) => Promise<Answer>,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown> {
  const reconnection = new Reconnection();
  for (let lastEventId = ''; ; ) {
    let failure: unknown;
    try {
      const answer = await open(lastEventId);
      reconnection.opened();
      failure = new UnreachableError(answer.url, new Error('the stream ended'));
      try {
        for await (const { id, event, data } of readEvents(answer.body)) {
          reconnection.seen();
          lastEventId = id || lastEventId;
          if (event !== CLOSED) yield JSON.parse(data);
        }
      } finally {
        answer.discard();
      }
    } catch (error) {
      if (signal?.aborted || !isTransient(error)) throw error;
      failure = error;
    }
    await reconnection.wait(failure, signal);
  }
}
