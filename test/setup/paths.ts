/** One of the two ways of a message, as the settings of a platform (architecture.md, decision 11). */
export interface Way {
  way: 'fast path' | 'workflow path';
  env: { FLEET_FAST_PATH: 'on' | 'off' };
}

export const FAST_PATH: Way = { way: 'fast path', env: { FLEET_FAST_PATH: 'on' } };
export const LONG_WAY: Way = { way: 'workflow path', env: { FLEET_FAST_PATH: 'off' } };

/** For `describe.each`: what callers, agents and humans see is the same in both. */
export const WAYS: readonly Way[] = [FAST_PATH, LONG_WAY];
