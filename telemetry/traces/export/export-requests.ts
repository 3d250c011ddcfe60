import type { EventPage } from '../../event-reader.js';
import type { Ended } from './ended-spans.js';
import type { ExportedSpan } from './otlp.js';

/** Spans of one request, and the position once they are taken: null where more spans of the same message follow. */
export interface ExportRequest {
  spans: ExportedSpan[];
  position: number | null;
}

/**
 * Spans in requests. One ends where a message does, unless that has more spans than a request may have.
 * @param position after all of them
 * @param mostNow spans of a request, as of each
 */
export function* requestsOf(
  ended: readonly Ended[],
  spans: ReadonlyMap<string, ExportedSpan[]>,
  position: number,
  mostNow: () => number,
): Generator<ExportRequest> {
  let batch: ExportedSpan[] = [];
  let upTo: number | null = null;
  for (const one of ended) {
    const own = spans.get(one.id) ?? [];
    if (batch.length > 0 && batch.length + own.length > mostNow()) {
      yield { spans: batch, position: upTo };
      batch = [];
    }
    batch = [...batch, ...own];
    for (let most = mostNow(); batch.length > most; most = mostNow()) {
      yield { spans: batch.slice(0, most), position: null };
      batch = batch.slice(most);
    }
    upTo = one.position;
  }
  yield { spans: batch, position };
}

/** The part of a page whose messages have all their spans. */
export function settledPart(
  { events, cursor }: EventPage,
  { position, settled_at }: { position: number; settled_at: Date },
): EventPage {
  const unsettled = events.findIndex(({ record }) => Date.parse(record.timestamp) > settled_at.getTime());
  if (unsettled < 0) return { events, cursor };
  return { events: events.slice(0, unsettled), cursor: events[unsettled - 1]?.position ?? position };
}
