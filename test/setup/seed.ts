import { randomInt } from 'node:crypto';

const IS_RANDOM = process.env.TEST_SEEDS === 'random';
const FIXED = 20_240_607;

/**
 * Where random tests begin: at the same numbers in each run of the gate, so that a commit has one answer, and at others with `TEST_SEEDS=random`,
 * as `npm run test:all` sets it. A failure says it in its message, never in its title; `TEST_SEED=…` repeats it.
 */
export const SEED = Number(process.env.TEST_SEED ?? (IS_RANDOM ? randomInt(2 ** 31) : FIXED));

/** How often a random test runs: few times in the gate, many where seeds are random; `TEST_RUNS` says otherwise. */
export const runsOf = (few: number, many: number): number => Number(process.env.TEST_RUNS ?? (IS_RANDOM ? many : few));

/** Numbers from 0 to 1 that a seed repeats. */
export function randomFrom(seed = SEED): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
