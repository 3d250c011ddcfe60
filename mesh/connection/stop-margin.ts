import type { Clocks } from '../../runtime/clocks.js';

/** Time for writes that are in progress when a stop's grace is over. */
export const LAST_WRITES_MS = 5_000;

/** A stopping node ends the grace of its connections itself, within this time after it. */
export function stopMarginMs({ transferMs }: Pick<Clocks, 'transferMs'>): number {
  return transferMs + LAST_WRITES_MS;
}
