import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestOf } from '../../messages/digest.js';

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
}

test('the order of members does not count, at any depth', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(digestOf(reversed(value))).toEqual(digestOf(value));
    }),
  );
});

test.each([
  [{ a: [1, 2] }, { a: [2, 1] }],
  [{ a: 1 }, { b: 1 }],
  [{ a: 1 }, { a: '1' }],
  [{ a: { b: 1 } }, { a: { b: 1, c: null } }],
])('anything else does: %j and %j', (one, other) => {
  expect(digestOf(one)).not.toEqual(digestOf(other));
});

test('a number beyond the range of doubles counts as null, which is what is stored', () => {
  expect(digestOf({ a: [Number.POSITIVE_INFINITY] })).toEqual(digestOf({ a: [null] }));
});

test('it stays what it is: rows of earlier versions are compared with it', () => {
  const value = { parts: [{ text: 'hello', kind: 'text' }], metadata: { skill_id: 's', agent_type: 'echo' } };
  expect(digestOf(value)).toBe('a4f77bdd1e1797d3aea84508c11ce8752fb44b27c6d2482c828a168c55f49fee');
});
