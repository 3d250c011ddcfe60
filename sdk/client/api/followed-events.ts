import { Backoff } from '../../backoff.js';
import { readEvents } from '../send/event-reader.js';
import type { Answer } from '../transport/transport.js';
import { isTransient, UnreachableError } from './errors.js';
import { pause } from './retries.js';

/** Time without the platform after which a stream fails. */
const RECONNECT_TIMEOUT_MS = 120_000;
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
  const backoff = new Backoff();
  let lastEventId = '';
  for (let lastSeenAtMs = Date.now(); ; ) {
    let failure: unknown = new UnreachableError('the stream', new Error('it ended'));
    try {
      const answer = await open(lastEventId);
      lastSeenAtMs = Date.now();
      try {
        for await (const { id, event, data } of readEvents(answer.body)) {
          lastSeenAtMs = Date.now();
          backoff.reset();
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
    if (Date.now() - lastSeenAtMs > RECONNECT_TIMEOUT_MS) throw failure;
    await pause(backoff.next(), signal);
  }
}
