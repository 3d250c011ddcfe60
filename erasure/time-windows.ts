/** A span of time, in milliseconds since 1970. */
export interface TimeWindow {
  fromMs: number;
  toMs: number;
}

/** Before the message was written: its ids come from the clocks of several processes. */
const BEFORE_MS = 60_000;
/** After its last change: what is reported about its end. */
const AFTER_MS = 600_000;

/**
 * The spans of time in which dispatches and events of messages were written, overlapping ones merged, so that they are found by their ids
 * without an index of their own, whether the messages are of one minute or of many years.
 */
export function windowsOf(messages: readonly { created_at: Date; updated_at: Date }[]): TimeWindow[] {
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
