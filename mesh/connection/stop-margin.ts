import type { Clocks } from '../../runtime/clocks.js';

/** Time for writes that are in progress when a stop's grace is over. */
export const LAST_WRITES_MS = 5_000;

/** Added to the grace of connections when their node stops: within this time the node itself ends the grace. */
export function stopMarginMs({ transferMs }: Pick<Clocks, 'transferMs'>): number {
  return transferMs + LAST_WRITES_MS;
}
