import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { dataOfText, formProblem, formProblems, schemaProblem } from '../../messages/input/form.js';

const form = (property: unknown) => ({ type: 'object', properties: { field: property } });

test.each<[string, Record<string, unknown>]>([
  ['of no fields', { type: 'object', properties: {} }],
  ['without a type', { properties: { a: { type: 'string' } } }],
  ['of scalars', form({ type: 'integer', minimum: 1 })],
  ['of scalars that may be null', form({ type: ['string', 'null'] })],
  ['of a choice', form({ enum: ['a', 2, null] })],
  ['of a choice with titles', form({ type: 'string', oneOf: [{ const: 'a', title: 'A' }] })],
  ['of a value that may be left open', form({ anyOf: [{ type: 'integer' }, { type: 'null' }], default: null })],
  ['of a list that may be', form({ anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] })],
  ['of one of two types', form({ anyOf: [{ type: 'string' }, { type: 'string', minLength: 2 }, { type: 'number' }] })],
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
  [
    'an object as an alternative',
    form({ anyOf: [{ type: 'object' }, { type: 'null' }] }),
    /anyOf\[0\]\.type .*"object"/,
  ],
  ['alternatives in alternatives', form({ oneOf: [{ anyOf: [{}] }] }), /oneOf\[0\]: .*flat, without anyOf in oneOf$/],
  ['alternatives that are none', form({ anyOf: { type: 'null' } }), /anyOf must be a list$/],
  ['too many alternatives', form({ oneOf: Array.from({ length: 1_001 }, (_, n) => ({ const: n })) }), /1000 values$/],
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

  const open = z.object({
    age: z.int().min(1).nullable(),
    color: z.union([z.literal('red'), z.literal(7)]),
    either: z.union([z.string(), z.number()]),
    names: z.array(z.string()).nullable(),
  });
  const values = { age: null, color: 'red', either: 'x', names: null };
  test.each<[Record<string, unknown>, RegExp | null]>([
    [{}, null],
    [{ age: 3, color: 7, either: 1, names: ['anna'] }, null],
    [{ age: '3' }, /^age must be integer,null$/],
    [{ age: 0 }, /^age must be >= 1$/],
    [{ color: 'green' }, /^color must be one of "red", 7$/],
    [{ either: true }, /^either must be string,number$/],
    [{ names: [1] }, /^names.0 must be string$/],
  ])('alternatives of zod: %j', (data, problem) => {
    const schema = z.toJSONSchema(open);
    expect(schemaProblem(schema)).toBeNull();
    const found = formProblem({ schema, fields: null }, { ...values, ...data });
    if (problem === null) expect(found).toBeNull();
    else expect(found).toMatch(problem);
  });
});

test('a choice of a form of fields is one of its options', () => {
  const fields = [{ id: 'tea', type: 'choice', options: ['green', { name: 'black' }] }];
  const problem = (data: Record<string, unknown>) => formProblem({ schema: null, fields }, data);
  expect([problem({ tea: 'green' }), problem({ tea: { name: 'black' } }), problem({})]).toEqual([null, null, null]);
  expect(problem({ tea: 'red' })).toBe('tea must be one of "green", {"name":"black"}');
  expect(problem({ milk: 1 })).toBe('milk is not a field of the form');
});

test('an error names all problems of an answer, ten at most', () => {
  const schema = { properties: { age: { type: 'integer' }, name: { type: 'string' } }, required: ['name'] };
  const problem = (data: Record<string, unknown>) => formProblem({ schema, fields: null }, data);
  expect(problem({ age: 'old' })).toBe("data must have required property 'name'; age must be integer");
  const fields = Array.from({ length: 12 }, (_, n) => `f${n}`);
  const listed = formProblem({ schema: null, fields: [] }, Object.fromEntries(fields.map((name) => [name, 1])));
  expect(listed).toMatch(/^f0 is not a field of the form; .*; f9 is not a field of the form; 2 more$/);
});

test('a person is told which values a field takes', () => {
  const schema = form({ enum: ['a', 'b'] });
  expect(formProblems({ schema }, { field: 'c' })).toEqual([
    { field: 'field', text: 'One of these is needed: "a", "b".' },
  ]);
  const many = Array.from({ length: 900 }, (_, index) => `value ${index}`);
  const [problem] = formProblems({ schema: form({ enum: many }) }, { field: 'c' });
  expect(problem?.text.length).toBeLessThan(400);
});

test.each<[string, Record<string, unknown>, string, unknown]>([
  ['a text', { type: 'string' }, ' tea ', ' tea '],
  ['a number', { type: 'integer' }, ' 50 ', 50],
  ['no number', { type: 'integer' }, 'fifty', 'fifty'],
  ['a choice', { enum: ['a', 2] }, '2', 2],
  ['a truth value', { type: 'boolean' }, 'Yes', true],
  ['a number or nothing', { anyOf: [{ type: 'number' }, { type: 'null' }] }, '1.5', 1.5],
])('plain text answers a form of one field: %s', (_what, property, text, value) => {
  expect(dataOfText({ schema: form(property), fields: null }, text)).toEqual({ field: value });
});

test('plain text is `text` where a form has no field, or several', () => {
  expect(dataOfText({ schema: null, fields: null }, 'tea')).toEqual({ text: 'tea' });
  expect(dataOfText({ schema: null, fields: [{ id: 'tea', type: 'text' }] }, 'green')).toEqual({ tea: 'green' });
  const two = { type: 'object', properties: { a: {}, b: {} } };
  expect(dataOfText({ schema: two, fields: null }, 'tea')).toEqual({ text: 'tea' });
});
