import { expect, test } from 'vitest';
import { LruMap } from '../../runtime/lru-map.js';

test('at least the newest are remembered, at most twice as many, and the last word counts', () => {
  const remembered = new LruMap<number>(3);
  for (let number = 0; number < 100; number += 1) {
    remembered.note(`k${number}`, number);
    const known = Array.from({ length: number + 1 }, (_, each) => each).filter(
      (each) => remembered.get(`k${each}`) === each,
    );
    expect(known).toEqual(Array.from({ length: known.length }, (_, index) => number + 1 - known.length + index));
    expect(known.length).toBeGreaterThanOrEqual(Math.min(3, number + 1));
    expect(known.length).toBeLessThanOrEqual(6);
  }
  remembered.note('k99', -1);
  expect(remembered.get('k99')).toBe(-1);
  expect(remembered.get('k0')).toBeUndefined();
});
