/** A span of time, in milliseconds since 1970. */
export interface TimeWindow {
  fromMs: number;
  toMs: number;
}

/** The time of a message, from its acceptance to its last change. */
export interface Lifetime {
  created_at: Date;
  updated_at: Date;
}

/** A time in which a message waited for a human. */
export interface Wait {
  requested_at: Date;
  ended_at: Date | null;
}

/** The parts of a message's time in which it may have got a dispatch: not while it waited for a human. @param waits the oldest first */
export function partsAtWork({ created_at, updated_at }: Lifetime, waits: readonly Wait[]): Lifetime[] {
  const begins = [created_at, ...waits.map(({ ended_at }) => ended_at ?? updated_at)];
  const ends = [...waits.map(({ requested_at }) => requested_at), updated_at];
  return begins.map((begin, index) => ({ created_at: begin, updated_at: ends[index] ?? updated_at }));
}

/** Before the message was written: its ids come from the clocks of several processes. */
const BEFORE_MS = 60_000;
/** After its last change: what is reported about its end. */
const AFTER_MS = 600_000;

/**
 * The spans of time in which dispatches and events of messages were written, overlapping ones merged, so that they are found by their ids
 * without an index of their own, whether the messages are of one minute or of many years.
 */
export function windowsOf(messages: readonly Lifetime[]): TimeWindow[] {
  const windows = messages
    .map((message) => ({
      fromMs: message.created_at.getTime() - BEFORE_MS,
      toMs: message.updated_at.getTime() + AFTER_MS,
    }))
    .sort((one, other) => one.fromMs - other.fromMs);
  const merged: TimeWindow[] = [];
  for (const window of windows) {
    const last = merged.at(-1);
    if (last && window.fromMs <= last.toMs) last.toMs = Math.max(last.toMs, window.toMs);
    else merged.push(window);
  }
  return merged;
}
