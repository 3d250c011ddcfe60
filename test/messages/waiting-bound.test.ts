import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WaitingBound } from '../../messages/accept/waiting-limit.js';

const TENANT = 'ten_1';
const UNCOUNTED = { limit: 0, full: false };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Begins to accept a message, which finds so many waiting where it counts. */
function accept(bound: WaitingBound, waiting: number): { limit: number; full: boolean } {
  const { limit, full, done } = bound.begin(TENANT);
  done(limit > 0 ? waiting : null);
  return { limit, full };
}

test('one message in five seconds counts, also at the bound', () => {
  const bound = new WaitingBound(100);
  expect(accept(bound, 99)).toEqual({ limit: 100, full: false });
  expect(accept(bound, 0)).toEqual(UNCOUNTED);
  vi.advanceTimersByTime(5_001);
  expect(accept(bound, 100)).toEqual({ limit: 100, full: false });
  expect([accept(bound, 0), accept(bound, 0)]).toEqual(Array(2).fill({ limit: 0, full: true }));
  vi.advanceTimersByTime(5_001);
  expect([accept(bound, 99), accept(bound, 0)]).toEqual([{ limit: 100, full: false }, UNCOUNTED]);
});

test('while one counts, the others go by what was known', () => {
  const bound = new WaitingBound(100);
  accept(bound, 100);
  vi.advanceTimersByTime(5_001);
  const counting = bound.begin(TENANT);
  expect(accept(bound, 0)).toEqual({ limit: 0, full: true });
  counting.done(3);
  expect(accept(bound, 0)).toEqual(UNCOUNTED);
});

test('where the count failed the next message counts, and tenants are counted apart', () => {
  const bound = new WaitingBound(100);
  bound.begin(TENANT).done(null);
  expect(accept(bound, 100).limit).toBe(100);
  expect(bound.begin('ten_2')).toMatchObject({ limit: 100, full: false });
});
