/** While its cooldown lasts, a rule with a threshold from 2 to 99 keeps up to this many events. */
const COUNTED_WHILE_COOLING = 100;

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

/** The most events that a rule keeps in its state: it is read and written with each event that the rule matches. */
export function keptEvents({ threshold }: Pick<Threshold, 'threshold'>): number {
  return threshold === 1 ? 0 : Math.max(threshold, COUNTED_WHILE_COOLING);
}

/**
 * Counts an event. A rule fires at `threshold` events within its window, and begins to count anew. During its cooldown it does not fire, and
 * keeps counting the newest events. Time is that of the events, so a relay that is late decides as one that is not.
 * @param atMs when the event happened, in milliseconds since 1970
 * @returns the new state, and how many events were counted if the rule fires
 */
export function countEvent(
  rule: Threshold,
  { counted_ms, fired_ms }: RuleState,
  atMs: number,
): { state: RuleState; fires: number | null } {
  const { threshold, window_seconds, cooldown_seconds } = rule;
  const kept = keptEvents(rule);
  const counted = [...counted_ms.filter((one) => one > atMs - window_seconds * 1_000), atMs];
  const isCooling = fired_ms !== null && atMs < fired_ms + cooldown_seconds * 1_000;
  if (isCooling || counted.length < threshold)
    return { state: { counted_ms: kept === 0 ? [] : counted.slice(-kept), fired_ms }, fires: null };
  return { state: { counted_ms: [], fired_ms: atMs }, fires: counted.length };
}
