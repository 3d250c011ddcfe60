import { expect, test } from 'vitest';
import { afterFailure, mayAttempt } from '../../deliveries/breakers.js';

const later = new Date(Date.now() + 60_000);
const closed = (failures: number) => ({ failures, open_until: null, probe: null });
const open = (failures: number, probe: string | null) => ({ failures, open_until: later, probe });

test.each([
  ['no breaker', null, true],
  ['a closed one', closed(4), true],
  ['an open one', open(5, null), false],
  ['an open one whose probe this is', open(5, 'mine'), true],
  ['an open one with another probe', open(5, 'other'), false],
])('%s lets an attempt through: %s', (_what, breaker, expected) => {
  expect(mayAttempt(breaker, 'mine')).toBe(expected);
});

test.each([
  ['the first failure', closed(0), { failures: 1, openMs: 0 }],
  ['the fourth', closed(3), { failures: 4, openMs: 0 }],
  ['the fifth opens it', closed(4), { failures: 5, openMs: 5_000 }],
  ['a failed probe doubles the pause', open(5, 'mine'), { failures: 6, openMs: 10_000 }],
  ['up to five minutes', open(40, 'mine'), { failures: 41, openMs: 300_000 }],
  ['an attempt from before it opened changes nothing', open(5, null), null],
])('%s', (_what, breaker, expected) => {
  expect(afterFailure(breaker, 'mine')).toEqual(expected);
});
