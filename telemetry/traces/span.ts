import type { TraceSpan } from '../../contracts/api/telemetry.js';

/** A span as it is derived from the record, with times to the millisecond. */
export interface Span extends Omit<TraceSpan, 'start' | 'end'> {
  start: Date;
  end: Date | null;
}

/** Attributes of which some are absent. */
export type Attributes = Record<string, string | number | boolean | null | undefined>;

type SpanFields = Pick<Span, 'span_id' | 'parent_span_id' | 'name' | 'start' | 'end'> & {
  kind?: Span['kind'];
  status?: Span['status'];
  attributes?: Attributes;
};

/** A span; `internal` and of the status `ok` once it has ended, unless it says otherwise. It never ends before it begins. */
export function spanOf({ kind = 'internal', status, attributes = {}, start, end, ...fields }: SpanFields): Span {
  const present = Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined);
  return {
    ...fields,
    kind,
    start,
    end: end && end < start ? start : end,
    status: end ? (status ?? 'ok') : 'unset',
    attributes: Object.fromEntries(present) as Span['attributes'],
  };
}

/** The later of two times. */
export function later(one: Date, other: Date | null | undefined): Date {
  return other && other > one ? other : one;
}

/** Moves a span whose times are another clock's into the span that it is part of: by as little as possible, and cut where it is longer. */
export function movedInto(enclosing: Pick<Span, 'start' | 'end'> | undefined, span: Span): Span {
  if (!enclosing || !span.end) return span;
  const [from, to] = [enclosing.start.getTime(), enclosing.end?.getTime() ?? Number.POSITIVE_INFINITY];
  const lengthMs = Math.min(span.end.getTime() - span.start.getTime(), to - from);
  const startMs = Math.max(from, Math.min(span.start.getTime(), to - lengthMs));
  return { ...span, start: new Date(startMs), end: new Date(startMs + lengthMs) };
}

/** Spans in the order in which they began. Where two began at once the parent goes first. */
export function inOrder(spans: readonly Span[]): Span[] {
  const byId = new Map(spans.map((span) => [span.span_id, span]));
  const depths = new Map<string, number>();
  /** Of a span below its ancestors: each is looked at once. */
  const depthOf = (span: Span): number => {
    const path: Span[] = [];
    let ancestor: Span | undefined = span;
    for (; ancestor && !depths.has(ancestor.span_id); ancestor = byId.get(ancestor.parent_span_id ?? '')) {
      depths.set(ancestor.span_id, 0); // ends the way where spans are each other's parents
      path.push(ancestor);
    }
    let depth = ancestor ? (depths.get(ancestor.span_id) ?? 0) + 1 : 0;
    for (const one of path.reverse()) depths.set(one.span_id, depth++);
    return depths.get(span.span_id) ?? 0;
  };
  const placed = spans.map((span, place) => ({ span, place, depth: depthOf(span) }));
  placed.sort((a, b) => a.span.start.getTime() - b.span.start.getTime() || a.depth - b.depth || a.place - b.place);
  return placed.map(({ span }) => span);
}

/** A span in its wire form. */
export function shownSpan({ start, end, ...span }: Span): TraceSpan {
  return { ...span, start: start.toISOString(), end: end?.toISOString() ?? null };
}
