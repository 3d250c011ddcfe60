import { describe, expect, test } from 'vitest';
import { formProblem, schemaProblem } from '../../messages/input/form.js';

const form = (property: unknown) => ({ type: 'object', properties: { field: property } });

test.each<[string, Record<string, unknown>]>([
  ['of no fields', { type: 'object', properties: {} }],
  ['without a type', { properties: { a: { type: 'string' } } }],
  ['of scalars', form({ type: 'integer', minimum: 1 })],
  ['of scalars that may be null', form({ type: ['string', 'null'] })],
  ['of a choice', form({ enum: ['a', 2, null] })],
  ['of a choice with titles', form({ type: 'string', oneOf: [{ const: 'a', title: 'A' }] })],
  ['of a list', form({ type: 'array', items: { type: 'string', enum: ['a', 'b'] }, uniqueItems: true })],
  ['with a regular expression, which is left out', form({ type: 'string', pattern: '(' })],
])('a form %s can be filled in', (_what, schema) => {
  expect(schemaProblem(schema)).toBeNull();
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['a type that there is not', { type: 'banana' }, /^type must be object, not "banana"$/],
  ['a scalar', { type: 'string' }, /^type must be object/],
  ['nothing', {}, /^properties must be an object$/],
  ['properties in a list', { type: 'object', properties: [] }, /^properties must be an object$/],
  ['a property of a type that there is not', form({ type: 'banana' }), /^properties\.field\.type .*"banana"/],
  ['a property that is none', form('string'), /^properties\.field must be an object$/],
  ['an object in it', form({ type: 'object', properties: {} }), /^properties\.field: .*flat, without properties$/],
  ['an object without properties in it', form({ type: 'object' }), /^properties\.field\.type .*"object"/],
  ['a reference', form({ $ref: '#/definitions/x' }), /flat, without \$ref$/],
  ['a list of lists', form({ type: 'array', items: { type: 'array' } }), /^properties\.field\.items\.type .*"array"/],
  ['a list of anything', form({ type: 'array' }), /^properties\.field\.items must be an object$/],
  ['required names that are none', { ...form({}), required: [1] }, /^required must be a list of names$/],
  ['parts that combine', { ...form({}), allOf: [] }, /flat, without allOf$/],
  ['a keyword that does not fit', form({ type: 'string', minLength: 'long' }), /minLength/],
  ['an empty choice', form({ enum: 'a' }), /enum/],
  [
    'a hundred and one fields',
    { properties: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`f${n}`, {}])) },
    /at most 100$/,
  ],
])('a form of %s cannot', (_what, schema, problem) => {
  expect(schemaProblem(schema)).toMatch(problem);
});

describe('what is filled in', () => {
  const schema = { ...form({ type: 'integer', minimum: 1 }), required: ['field'] };

  test.each<[Record<string, unknown>, RegExp | null]>([
    [{ field: 3 }, null],
    [{ field: 0 }, /^field must be >= 1$/],
    [{}, /required property 'field'/],
  ])('%j', (data, problem) => {
    const found = formProblem({ schema, fields: null }, data);
    if (problem === null) expect(found).toBeNull();
    else expect(found).toMatch(problem);
  });
});
