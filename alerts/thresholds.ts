import { LIMITS } from '../contracts/limits.js';

/** What a rule has counted. */
export interface RuleState {
  /** When the counted events happened, in milliseconds since 1970. */
  counted_ms: number[];
  /** When the rule fired last. */
  fired_ms: number | null;
}

/** When a rule fires. */
export interface Threshold {
  threshold: number;
  window_seconds: number;
  cooldown_seconds: number;
}

/** Whether a rule has a state: one that fires on every event has none. */
export function hasState({ threshold, cooldown_seconds }: Threshold): boolean {
  return threshold > 1 || cooldown_seconds > 0;
}

/**
 * Counts an event. A rule fires when it has counted `threshold` events within its window, unless its cooldown lasts; then it begins to count
 * anew. Time is that of the events, so a relay that is late decides as one that is not.
 * @param atMs when the event happened, in milliseconds since 1970
 * @returns the new state, and how many events were counted if the rule fires
 */
export function countEvent(
  { threshold, window_seconds, cooldown_seconds }: Threshold,
  { counted_ms, fired_ms }: RuleState,
  atMs: number,
): { state: RuleState; fires: number | null } {
  // A rule that fires on every event counts none: only its cooldown has a state.
  const inWindow = threshold === 1 ? [] : counted_ms.filter((one) => one > atMs - window_seconds * 1_000);
  const counted = [...inWindow, atMs].slice(-LIMITS.alertThresholdMax);
  const isCooling = fired_ms !== null && atMs < fired_ms + cooldown_seconds * 1_000;
  if (isCooling || counted.length < threshold)
    return { state: { counted_ms: threshold === 1 ? [] : counted, fired_ms }, fires: null };
  return { state: { counted_ms: [], fired_ms: atMs }, fires: counted.length };
}
