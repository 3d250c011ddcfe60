import { expect, test } from 'vitest';
import { LentPlaces } from '../../../messages/dispatch/lent-places.js';

const ends = (lent: LentPlaces, count: number, isWritten = true) =>
  Array.from({ length: count }, (_, n) => {
    const dispatch = { tenant_id: 't', message_id: `msg_${n}`, dispatch_id: `dsp_${n}` };
    const takesNothing = lent.mustRepay(dispatch);
    expect(lent.hasRepaid(dispatch, isWritten)).toBe(takesNothing);
    return takesNothing;
  });

test.each([
  { what: 'below the bound', bound: 80, inFlight: 79, lends: 0, owes: 0 },
  { what: 'at the bound: an eighth of it', bound: 80, inFlight: 80, lends: 10, owes: 0 },
  { what: 'at a large bound: sixteen', bound: 2_000, inFlight: 2_000, lends: 16, owes: 0 },
  { what: 'at a small bound: one', bound: 1, inFlight: 1, lends: 1, owes: 0 },
  { what: 'some are lent already', bound: 80, inFlight: 84, lends: 6, owes: 4 },
  { what: 'all are', bound: 80, inFlight: 90, lends: 0, owes: 10 },
  { what: 'the bound was lowered', bound: 10, inFlight: 50, lends: 0, owes: 40 },
])('what a node lends and owes alone: $what', ({ bound, inFlight, lends, owes }) => {
  const lent = new LentPlaces({ tenantMaxInFlight: bound });
  expect(lent.settle('t', inFlight, inFlight)).toBe(lends);
  expect(ends(lent, owes + 2)).toEqual([...Array(owes).fill(true), false, false]);
});

test('a node owes its share of what is beyond the bound', () => {
  const lent = new LentPlaces({ tenantMaxInFlight: 100 });
  lent.settle('t', 120, 60);
  expect(ends(lent, 12).filter(Boolean)).toHaveLength(10);
});

test('an end that was not written is owed again, and nothing once the tenant is below its bound', () => {
  const lent = new LentPlaces({ tenantMaxInFlight: 8 });
  lent.settle('t', 9, 9);
  expect(ends(lent, 3, false)).toEqual([true, true, true]);
  expect(ends(lent, 2)).toEqual([true, false]);
  lent.settle('t', 9, 9);
  lent.forget('t');
  expect(ends(lent, 1)).toEqual([false]);
  lent.settle('t', 9, 9);
  lent.keep(new Set(['other']));
  expect(ends(lent, 1)).toEqual([false]);
});
