import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { InFlightLimit } from '../../messages/accept/in-flight-limit.js';

const TENANT = 'ten_1';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Accepts a message as T1 would, with `inFlight` before it. @returns what T1 counted to */
function accept(bound: InFlightLimit, inFlight: number): number {
  const counting = bound.begin(TENANT);
  counting.done(counting.limit > 0 ? inFlight : null);
  return counting.limit;
}

test('with room, one count is good for an eighth of it, and for a second', () => {
  const bound = new InFlightLimit(100);
  expect(accept(bound, 20)).toBe(100);
  expect(Array.from({ length: 10 }, () => accept(bound, 0))).toEqual(Array(10).fill(0));
  expect(accept(bound, 30)).toBe(100);
  expect(accept(bound, 31)).toBe(0);
  vi.advanceTimersByTime(1_001);
  expect(accept(bound, 32)).toBe(100);
});

test('near the bound each message is counted, and so is each of a tenant that is not known', () => {
  const bound = new InFlightLimit(100);
  expect([93, 94, 99, 100].map((inFlight) => accept(bound, inFlight))).toEqual([100, 100, 100, 100]);
  expect(bound.begin('ten_2').limit).toBe(100);
});

test('however many are accepted at once, no more go uncounted than an eighth of the room', () => {
  const bound = new InFlightLimit(80);
  const first = Array.from({ length: 50 }, () => bound.begin(TENANT));
  expect(first.every(({ limit }) => limit === 80)).toBe(true);
  const uncounted: { limit: number }[] = [];
  for (const counting of first) {
    counting.done(0);
    const next = bound.begin(TENANT);
    if (next.limit === 0) uncounted.push(next);
  }
  expect(uncounted).toHaveLength(10);
});

test('a count that was asked for before the one that is known is not taken', () => {
  const bound = new InFlightLimit(80);
  const slow = bound.begin(TENANT);
  vi.advanceTimersByTime(10);
  expect(accept(bound, 80)).toBe(80);
  slow.done(0);
  expect(bound.begin(TENANT).limit).toBe(80);
});

test('a message that failed gives back its place', () => {
  const bound = new InFlightLimit(16);
  accept(bound, 0);
  const uncounted = [bound.begin(TENANT), bound.begin(TENANT)];
  expect(uncounted.map(({ limit }) => limit)).toEqual([0, 0]);
  for (const one of uncounted) one.done(null);
  expect([accept(bound, 0), accept(bound, 0), accept(bound, 0)]).toEqual([16, 0, 0]);
});
