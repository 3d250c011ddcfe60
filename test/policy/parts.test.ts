import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Candidates } from '../../policy/indexing/candidates.js';
import { Parts } from '../../policy/indexing/parts.js';
import { Budget } from '../../policy/matching/budget.js';

/** The places of the parts that one of the texts contains; null: it would cost too much. */
function found(parts: readonly string[], texts: readonly string[], budget = new Budget()): number[] | null {
  const index = new Parts();
  for (const [place, part] of parts.entries()) index.add(part, place);
  const candidates = new Candidates(parts.length);
  if (!budget.takeOptional(index.cost(texts)) || !index.findIn(texts, candidates, budget)) return null;
  return [...parts.keys()].filter((place) => candidates.has(place));
}

test('finds just the parts that a text contains, few and many', () => {
  // Letters of all widths, few of them, so that texts contain parts by chance.
  const text = (maxLength: number) =>
    fc.array(fc.constantFrom('a', 'b', ' ', 'é', '字', '\u{1f600}'), { maxLength }).map((letters) => letters.join(''));
  fc.assert(
    fc.property(
      fc.oneof(fc.array(text(4), { maxLength: 12 }), fc.array(text(4), { minLength: 30, maxLength: 80 })),
      fc.array(text(20), { maxLength: 3 }),
      (parts, texts) => {
        const contained = [...parts.keys()].filter((place) =>
          texts.some((one) => one.includes(parts[place] as string)),
        );
        expect(found(parts, texts)).toEqual(contained);
      },
    ),
    { numRuns: 300 },
  );
});

const thousand = (partOf: (n: number) => string) => Array.from({ length: 1_000 }, (_, n) => partOf(n));

test('a long text is searched for what it may contain alone', () => {
  const prose = 'The delivery for order 471 left on Tuesday. '.repeat(2_000);
  expect(
    found(
      thousand((n) => `order ${n} left`),
      [prose],
    ),
  ).toEqual([471]);
});

test('more than half of the budget is not begun', () => {
  const hostile = 'ab'.repeat(20_000);
  expect(
    found(
      thousand((n) => 'ab'.repeat(n + 2)),
      [hostile],
    ),
  ).toBe(null);
  expect(found(thousand(String), Array.from({ length: 1_000 }, String))).toBe(null);
});
