import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  hasMoreValues,
  jsonProblem,
  makeWellFormed,
  mayBeIllFormed,
  mayBeUnfit,
  nestsDeeper,
} from '../../contracts/json-guard.js';

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('nesting of JSON text', () => {
  it('is what parsing it would find', () => {
    const text = fc.json({ depthSize: 'large' });
    const hiding = fc
      .array(fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ']', '}', 'a') }))
      .map((words) => JSON.stringify(words));
    fc.assert(
      fc.property(fc.oneof(text, hiding), (json) => {
        const depth = depthOf(JSON.parse(json));
        expect([nestsDeeper(json, depth), depth > 0 && nestsDeeper(json, depth - 1)]).toEqual([false, depth > 0]);
      }),
    );
  });

  it.each([
    ['a string that does not end', '"[[[', false],
    ['a quote that is escaped at the end', '["\\"', false],
    ['brackets after a backslash that is escaped', '"\\\\"[[[', true],
    ['brackets alone', '['.repeat(100_000), true],
    ['backslashes before each quote', `"${'\\\\\\"'.repeat(100_000)}"`, false],
  ])('is told of %s', (_what, text, deeper) => {
    expect(nestsDeeper(text, 2)).toBe(deeper);
  });
});

/** Every container counts one, and every value after the first of a container. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  return 1 + Math.max(0, members.length - 1) + members.reduce<number>((sum, member) => sum + valuesIn(member), 0);
}

describe('the number of values in JSON text', () => {
  it('is what parsing it would find', () => {
    fc.assert(
      fc.property(fc.json({ depthSize: 'large' }), (value) => {
        const json = `[${value}]`;
        const values = 1 + valuesIn(JSON.parse(json));
        expect([hasMoreValues(json, values), hasMoreValues(json, values - 1)]).toEqual([false, true]);
      }),
    );
  });
});

describe('text without escapes', () => {
  it('needs no mending once parsed, and its twin in escapes is noticed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const json = JSON.stringify(text);
        const parsed = { text: JSON.parse(json) };
        if (!mayBeIllFormed(json)) expect(parsed.text.isWellFormed()).toBe(true);
        makeWellFormed(parsed);
        expect(parsed.text).toBe(text.toWellFormed());
      }),
    );
    expect(mayBeIllFormed('"\\ud83d"')).toBe(true);
  });

  it.each([
    '{"\\u005f_proto__":1}',
    '{"\\u005F\\u005Fproto__":1}',
    '{"constructor":{"p\\u0072ototype":1}}',
    '["\\u0000"]',
  ])('hides nothing: %s', (text) => {
    expect(jsonProblem(JSON.parse(text))).toBeDefined();
    expect(mayBeUnfit(text)).toBe(true);
  });
});

describe('values unfit for the platform', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
  it.each<[string, unknown, string | undefined]>([
    ['32 levels', nested(32), undefined],
    ['33 levels', nested(33), 'is nested deeper than 32'],
    ['a prototype key in a list', JSON.parse('[0,{"a":{"__proto__":1}}]'), 'holds the key __proto__'],
    ['a constructor with a prototype', { constructor: { prototype: 1 } }, 'holds the key constructor.prototype'],
    ['a constructor', { constructor: 'Bauhaus' }, undefined],
    ['NUL in a string', ['fine', { a: 'b\0' }], 'holds a NUL character'],
    ['NUL in a key', { 'a\0': 1 }, 'holds a NUL character'],
    ['half of a pair in a key', { '\ud83d': 1 }, 'holds a key that is not well-formed Unicode'],
    ['half of a pair in a string', ['\ud83d'], undefined],
  ])('are told: %s', (_what, value, problem) => {
    expect(jsonProblem(value)).toBe(problem);
    const text = JSON.stringify(value);
    // Who trusts the text alone misses nothing.
    if (problem) expect(mayBeUnfit(text) || nestsDeeper(text, 32)).toBe(true);
  });
});
