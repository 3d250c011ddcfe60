import { expect, test } from 'vitest';
import { WindowCounter } from '../../api/window-counter.js';

function counter(maxKeys = 100) {
  let nowMs = 0;
  const windows = new WindowCounter({ windowMs: 60_000, limit: 2, maxKeys, nowMs: () => nowMs });
  const allowed = (key: string): string => {
    try {
      windows.check(key, 'wait');
    } catch (error) {
      return (error as { headers: Record<string, string> }).headers['Retry-After'] ?? '';
    }
    windows.add(key);
    return 'yes';
  };
  return {
    allowed,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('a key is told how many seconds are left of its window, and starts over after it', () => {
  const { allowed, pass } = counter();
  expect([allowed('a'), allowed('a'), allowed('a'), allowed('b')]).toEqual(['yes', 'yes', '60', 'yes']);
  pass(30_500);
  expect(allowed('a')).toBe('30');
  pass(29_500);
  expect(allowed('a')).toBe('yes');
});

test('at its bound it forgets the key that began first', () => {
  const { allowed } = counter(2);
  expect([allowed('a'), allowed('a'), allowed('b'), allowed('c')]).toEqual(['yes', 'yes', 'yes', 'yes']);
  expect(allowed('a')).toBe('yes');
});
