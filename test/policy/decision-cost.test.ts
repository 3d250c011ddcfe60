import { expect, test } from 'vitest';
import type { ArgumentCondition } from '../../contracts/api/policies/policy-match.js';
import { compileArgument } from '../../policy/matching/argument-conditions.js';
import { argumentValues } from '../../policy/matching/argument-values.js';
import { Budget } from '../../policy/matching/budget.js';
import { Facts } from '../../policy/matching/facts.js';
import { compileGlobs } from '../../policy/matching/globs.js';

/** What the arguments of a tool call, which may have 256 KiB, can hold. */
const ITEMS = Array.from({ length: 87_000 }, () => ({}));
const DIGITS = '1'.repeat(250_000);

test.each<[string, ArgumentCondition, unknown]>([
  ['members that lack the value', { path: 'a.*.x', op: 'eq', value: 1 }, ITEMS],
  ['members of members', { path: 'a.*.*.x', op: 'eq', value: 1 }, ITEMS.map(() => [{}])],
  ['a long text that may be a number', { path: 'a', op: 'eq', value: 2 }, DIGITS],
  ['one of many numbers', { path: 'a', op: 'in', value: Array.from({ length: 100 }, (_, n) => n) }, DIGITS],
  ['many values and many numbers', { path: 'a.*', op: 'in', value: [...'abcdefghij'] }, ITEMS.map(() => 'z')],
  ['an object as a text', { path: 'a', op: 'matches', value: 'x' }, ITEMS],
])('conditions cost what they look at, and then restrict: %s', (_what, condition, a) => {
  const { holds } = compileArgument(condition, true);
  const budget = new Budget();
  for (let asked = 0; asked < 100; asked += 1) holds({ a }, budget);
  expect(budget.isSpent).toBe(true);
  expect(holds({ a }, budget)).toBe(true);
  expect(compileArgument(condition, false).holds({ a }, budget)).toBe(false);
});

test('to find policies by members costs what is looked at', () => {
  const facts = new Facts('ten_1', { scope: 'tool', action: 'call', arguments: { a: ITEMS } });
  for (let asked = 0; asked < 100; asked += 1) argumentValues('equal_arguments', 'a.*.x', facts);
  expect(argumentValues('equal_arguments', 'a.*.x', facts)).toBe('any');
});

test('to look a text up costs a unit', () => {
  const matches = compileGlobs(['files.read']);
  const budget = new Budget();
  expect(matches('files.write', budget)).toBe(false);
  expect(matches('files.read', budget)).toBe(true);
  budget.spend(1_000_000 - 2);
  expect(matches('files.read', budget)).toBeUndefined();
});
