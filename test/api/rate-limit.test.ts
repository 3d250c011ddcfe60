import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RateLimit } from '../../api/rate-limit.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.advanceTimersByTime(1); // to lru-cache an entry of the moment 0 has no lifetime
});
afterEach(() => {
  vi.useRealTimers();
});

/** Counts each call that is allowed; a refused one gives its `Retry-After`. */
function counting(limit: RateLimit) {
  return (key: string): string => {
    try {
      limit.check(key, 'wait');
    } catch (error) {
      return (error as { headers: Record<string, string> }).headers['Retry-After'] ?? '';
    }
    limit.add(key);
    return 'yes';
  };
}

const twice = () => counting(new RateLimit({ name: 'test', limit: 2, windowSeconds: 60, redis: null }));

test('a key is told how many seconds are left of its window, and starts over after it', () => {
  const allowed = twice();
  expect([allowed('a'), allowed('a'), allowed('a'), allowed('b')]).toEqual(['yes', 'yes', '60', 'yes']);
  vi.advanceTimersByTime(30_500);
  expect(allowed('a')).toBe('30');
  vi.advanceTimersByTime(29_501);
  expect(allowed('a')).toBe('yes');
});

test('a flood of keys makes it forget the one that was used longest ago', () => {
  const allowed = twice();
  expect([allowed('a'), allowed('a'), allowed('b'), allowed('b')]).toEqual(['yes', 'yes', 'yes', 'yes']);
  for (let key = 0; key < 9_999; key += 1) allowed(`key ${key}`);
  expect([allowed('b'), allowed('a')]).toEqual(['60', 'yes']);
});
