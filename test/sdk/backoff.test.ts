import { expect, test } from 'vitest';
import { Backoff } from '../../sdk/backoff.js';

const steps = (random: number) => {
  const backoff = new Backoff(undefined, () => random);
  return Array.from({ length: 7 }, () => backoff.next());
};

test('waits 1, 2, 4, 8, 16, then 30 seconds', () => {
  expect(steps(0.5)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test('jitters by a quarter in both directions', () => {
  expect(steps(0).slice(0, 2)).toEqual([750, 1_500]);
  expect(steps(1).slice(0, 2)).toEqual([1_250, 2_500]);
});

test('begins again after a success', () => {
  const backoff = new Backoff(undefined, () => 0.5);
  backoff.next();
  backoff.next();
  backoff.reset();
  expect(backoff.next()).toBe(1_000);
});

test.each([
  [0, 5_000, 5_000],
  [1, 5_000, 6_250],
  [0.5, 100, 1_000],
  [0, 3_600_000, 300_000],
  [1, 3_600_000, 375_000],
])('with jitter %d, asked to wait %d ms at least, waits %d ms', (random, leastMs, waitMs) => {
  expect(new Backoff(undefined, () => random).next(leastMs)).toBe(waitMs);
});
