import { expect, test } from 'vitest';
import { ArithmeticError, evaluate } from '../../examples/concierge/arithmetic.js';

test.each([
  ['1 + 2 * 3', 7],
  ['(1 + 2) * 3', 9],
  ['10 - 4 - 3', 3],
  ['100 / 10 / 5', 2],
  ['7 % 4', 3],
  ['2 ^ 3 ^ 2', 512],
  ['2 ** 10', 1024],
  ['-2 ^ 2', -4],
  ['2 ^ -1', 0.5],
  ['--3', 3],
  ['1.5e3 + .5', 1500.5],
  ['sqrt(16) + abs(-3)', 7],
  ['max(1, min(5, 3))', 3],
  ['round(pi * 100)', 314],
  ['15% of 80', 12],
  ['6 × 7 ÷ 2', 21],
])('%s is %d', (expression, value) => {
  expect(evaluate(expression)).toBeCloseTo(value, 10);
});

test.each([
  ['', 'the expression ends too early'],
  ['1 +', 'the expression ends too early'],
  ['1 2', 'I did not expect "2"'],
  ['(1', 'a bracket is not closed'],
  ['1 / 0', 'division by zero'],
  ['10 ^ 1000', 'the result is not a finite number'],
  ['sqrt(-1)', 'the result is not a finite number'],
  ['process.exit()', 'I cannot read ".exit()"'],
  ['constructor', 'I do not know "constructor"'],
  ['__proto__', 'I cannot read "__proto__"'],
  ['sqrt 4', '"sqrt" needs its value in brackets'],
  ['max(1)', '"max" takes 2 values'],
  ['1;2', 'I cannot read ";2"'],
  ['1'.repeat(501), 'an expression has at most 500 characters'],
  ['('.repeat(200), 'the expression is nested too deeply'],
  ['-'.repeat(200), 'the expression is nested too deeply'],
  ['2^'.repeat(200), 'the expression is nested too deeply'],
])('refuses %j', (expression, message) => {
  expect(() => evaluate(expression)).toThrow(new ArithmeticError(message));
});
