import { LIMITS } from '../../contracts/limits.js';

/** Waits in ping intervals, three in all; the last ping goes out early, so that it too has time to be answered. */
const WAITS = [1, 1, 2 / 3, 1 / 3];

/**
 * What comes next for a connection of which so many pings in a row have no answer (specification section 6: three missed pings, about
 * 90 s).
 * @returns milliseconds until then; `ping`: another one is due, `dead`: the agent counts as gone
 */
export function afterPings(unanswered: number, pingIntervalMs: number): { inMs: number; then: 'ping' | 'dead' } {
  const then = unanswered < LIMITS.missedPingsMax ? 'ping' : 'dead';
  return { inMs: (WAITS[unanswered] ?? 0) * pingIntervalMs, then };
}
