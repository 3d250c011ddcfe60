/** One of the two ways of a message, as the settings of a platform (architecture.md, decision 11). */
export interface Way {
  way: 'short way' | 'long way';
  env: { FLEET_SHORT_WAY: 'on' | 'off' };
}

export const SHORT_WAY: Way = { way: 'short way', env: { FLEET_SHORT_WAY: 'on' } };
export const LONG_WAY: Way = { way: 'long way', env: { FLEET_SHORT_WAY: 'off' } };

/** For `describe.each`: what callers, agents and humans see is the same in both. */
export const WAYS: readonly Way[] = [SHORT_WAY, LONG_WAY];
