import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type BoundsCheck, MessageBounds } from '../../messages/accept/message-bounds.js';

const TENANT = 'ten_1';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('messages in flight', () => {
  const limitsOf = (max: number) =>
    new MessageBounds({ tenantMaxInFlight: max, tenantMaxQueued: 1_000, tenantMaxWaiting: 1_000 });
  const limitOf = ({ counting }: BoundsCheck): number => counting.in_flight_limit;

  /** Accepts a message as the accept transaction would, with `inFlight` before it. @returns the limit of its count */
  function accept(limits: MessageBounds, inFlight: number): number {
    const admission = limits.begin(TENANT);
    const limit = limitOf(admission);
    admission.done({ in_flight: limit > 0 ? inFlight : null, queued: 0, waiting: 0 });
    return limit;
  }

  test('with room, one count is good for an eighth of it, and for a second', () => {
    const limits = limitsOf(100);
    expect(accept(limits, 20)).toBe(100);
    expect(Array.from({ length: 10 }, () => accept(limits, 0))).toEqual(Array(10).fill(0));
    expect(accept(limits, 30)).toBe(100);
    expect(accept(limits, 31)).toBe(0);
    vi.advanceTimersByTime(1_001);
    expect(accept(limits, 32)).toBe(100);
  });

  test('near the limit each message is counted, and so is each of a tenant that is not known', () => {
    const limits = limitsOf(100);
    expect([93, 94, 99, 100].map((inFlight) => accept(limits, inFlight))).toEqual([100, 100, 100, 100]);
    expect(limitOf(limits.begin('ten_2'))).toBe(100);
  });

  test('however many are accepted at once, no more go uncounted than an eighth of the room', () => {
    const limits = limitsOf(80);
    const first = Array.from({ length: 50 }, () => limits.begin(TENANT));
    expect(first.map(limitOf)).toEqual(first.map(() => 80));
    let uncounted = 0;
    for (const admission of first) {
      admission.done({ in_flight: 0, queued: 0, waiting: 0 });
      if (limitOf(limits.begin(TENANT)) === 0) uncounted += 1;
    }
    expect(uncounted).toBe(10);
  });

  test('a count that was requested before the known one is ignored', () => {
    const limits = limitsOf(80);
    const slow = limits.begin(TENANT);
    vi.advanceTimersByTime(10);
    expect(accept(limits, 80)).toBe(80);
    slow.done({ in_flight: 0, queued: 0, waiting: 0 });
    expect(limitOf(limits.begin(TENANT))).toBe(80);
  });

  test('while a new count is under way others use the room of the one before', () => {
    const limits = limitsOf(80);
    accept(limits, 0);
    vi.advanceTimersByTime(1_001);
    const counting = limits.begin(TENANT);
    expect([limitOf(counting), limitOf(limits.begin(TENANT))]).toEqual([80, 0]);
    counting.done(null);
    expect(accept(limits, 0)).toBe(80);
  });

  test('a message that failed frees its place', () => {
    const limits = limitsOf(16);
    accept(limits, 0);
    const uncounted = [limits.begin(TENANT), limits.begin(TENANT)];
    expect(uncounted.map(limitOf)).toEqual([0, 0]);
    for (const admission of uncounted) admission.done(null);
    expect([accept(limits, 0), accept(limits, 0), accept(limits, 0)]).toEqual([16, 0, 0]);
  });
});

describe('messages that wait for input', () => {
  const COUNTED = { limit: 100, full: false };
  const UNCOUNTED = { limit: 0, full: false };
  const FULL = { limit: 0, full: true };
  const limitsOf = () => new MessageBounds({ tenantMaxInFlight: 1_000, tenantMaxQueued: 1_000, tenantMaxWaiting: 100 });
  const waitingOf = ({ counting }: BoundsCheck) => ({ limit: counting.waiting_limit, full: counting.waiting_full });

  /** Accepts a message while `waiting` others wait. */
  function accept(limits: MessageBounds, waiting: number): { limit: number; full: boolean } {
    const admission = limits.begin(TENANT);
    const counting = waitingOf(admission);
    admission.done({ in_flight: 0, queued: 0, waiting: counting.limit > 0 ? waiting : null });
    return counting;
  }

  test('one message in five seconds counts, also at the limit', () => {
    const limits = limitsOf();
    expect([accept(limits, 99), accept(limits, 0)]).toEqual([COUNTED, UNCOUNTED]);
    vi.advanceTimersByTime(5_001);
    expect([accept(limits, 100), accept(limits, 0), accept(limits, 0)]).toEqual([COUNTED, FULL, FULL]);
    vi.advanceTimersByTime(5_001);
    expect([accept(limits, 99), accept(limits, 0)]).toEqual([COUNTED, UNCOUNTED]);
  });

  test('while one counts, the others use the count before', () => {
    const limits = limitsOf();
    accept(limits, 100);
    vi.advanceTimersByTime(5_001);
    const counting = limits.begin(TENANT);
    expect(accept(limits, 0)).toEqual(FULL);
    counting.done({ in_flight: 0, queued: 0, waiting: 3 });
    expect(accept(limits, 0)).toEqual(UNCOUNTED);
  });

  test('after a failed count the next message counts, and tenants are counted apart', () => {
    const limits = limitsOf();
    limits.begin(TENANT).done(null);
    expect(accept(limits, 100)).toEqual(COUNTED);
    expect(waitingOf(limits.begin('ten_2'))).toEqual(COUNTED);
  });
});
