import { expect, test } from 'vitest';
import { compileRegex } from '../../policy/matching/regex.js';
import { regexWork } from '../../policy/matching/regex-work.js';

/** More than compiling an ordinary one takes, in microseconds, and less than the bound. */
const ORDINARY_MAX = 2_000;

test.each([
  ['^/srv/(data|logs)/[a-z0-9_-]+\\.json$'],
  ['(?i)\\b(drop|truncate)\\s+table\\b'],
  ['^[\\w.+-]+@[\\w-]+\\.[\\w.]{2,24}$'],
  ["^\\p{L}[\\p{L}\\p{N}' -]{0,99}$"],
  ['\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}'],
  ['[]a-z]{3}[^]-]|a{2,}|(?:x|y)*'],
  ['a'.repeat(256)],
])('an ordinary expression: %s', (source) => {
  expect(regexWork(source)).toBeLessThan(ORDINARY_MAX);
  expect(compileRegex(source).charCost).toBeGreaterThan(0);
});

test.each([
  ['a repeated group', `(${'ab?'.repeat(80)}){1000}`],
  ['repetitions in repetitions', `(((${'ab?'.repeat(60)}){10}){10}){10}`],
  ['ranges whose case is ignored', `(?i)${'[\\x{0}-\\x{ffff}]'.repeat(9)}`],
  ['such a range without a number', `(?i)[${'\\t-\\x{fffff}'}]`],
  ['Unicode classes', `[${'\\pL\\pS'.repeat(20)}]`],
  ['a flag in a group', `(?m-s)(?si:${'[Ā-\u{1ffff}]'.repeat(9)})`],
  ['a long text', 'a'.repeat(800)],
])('one that takes long to compile: %s', (_what, source) => {
  expect(regexWork(source)).toBeGreaterThan(5_000);
  expect(() => compileRegex(source)).toThrow('too large');
});

test('of what an expression needs, a few short lists are kept, the longest texts first', () => {
  expect(compileRegex('(ab|cde).*f.*gh.*ijk').parts).toEqual([['ijk'], ['ab', 'cde'], ['gh']]);
  const many = Array.from({ length: 17 }, (_, n) => `long-${n}`).join('|');
  expect(compileRegex(`(${many}).*end`).parts).toEqual([['end']]);
});
