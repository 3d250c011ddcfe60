import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { keepAhead, takeAhead } from '../../console/api/ahead.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.runAllTimers();
  vi.useRealTimers();
});

test('what was asked for ahead is the answer to the first who asks for the same', async () => {
  keepAhead('/a {}', Promise.resolve(1));
  expect(takeAhead('/a')).toBeUndefined();
  expect(await takeAhead('/a {}')).toBe(1);
  expect(takeAhead('/a {}')).toBeUndefined();
});

test('an answer that nobody took in time is not given any more', () => {
  keepAhead('/a', Promise.resolve(1));
  vi.advanceTimersByTime(5_000);
  expect(takeAhead('/a')).toBeUndefined();
});

test('a failure is told to who has taken the answer, and to nobody else: who comes later asks again', async () => {
  keepAhead('/a', Promise.reject(new Error('away')));
  keepAhead('/b', Promise.reject(new Error('away'))); // unhandled, it would fail the run
  await expect(takeAhead('/a')).rejects.toThrow('away');
  expect(takeAhead('/b')).toBeUndefined();
});
