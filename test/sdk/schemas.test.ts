import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { InputSchema } from '../../sdk/index.js';
import { checked, jsonSchemaOf, requireUsable } from '../../sdk/schema/schema.js';

const zod = z.object({ item: z.string(), count: z.number().min(1) });
const valibot = toStandardJsonSchema(v.object({ item: v.string(), count: v.pipe(v.number(), v.minValue(1)) }));
const arktype = type({ item: 'string', count: 'number >= 1' });
const plain = {
  type: 'object',
  properties: { item: { type: 'string' }, count: { type: 'number', minimum: 1 } },
  required: ['item', 'count'],
} as const;

const SCHEMAS: [string, InputSchema][] = [
  ['zod', zod],
  ['valibot', valibot],
  ['arktype', arktype],
  ['JSON Schema', plain],
];

describe.each(SCHEMAS)('a schema of %s', (_name, schema) => {
  test('describes itself', () => {
    const { type, properties, required = [] } = jsonSchemaOf(schema) as Partial<typeof plain>;
    expect({ type, required: [...required].sort() }).toEqual({ type: 'object', required: ['count', 'item'] });
    expect(properties).toMatchObject({ item: { type: 'string' }, count: { type: 'number', minimum: 1 } });
  });

  test('passes what fits and says what does not', async () => {
    expect(await checked(schema, { item: 'tea', count: 2 })).toEqual({
      value: { item: 'tea', count: 2 },
      problem: null,
    });
    const { value, problem } = await checked(schema, { item: 'tea', count: 0 });
    expect(value).toBeUndefined();
    expect(problem).toMatch(/count/);
  });
});

test('values have the type of their schema', async () => {
  type Order = { item: string; count: number } | undefined;
  expectTypeOf((await checked(zod, {})).value).toEqualTypeOf<Order>();
  expectTypeOf((await checked(valibot, {})).value).toEqualTypeOf<Order>();
  expectTypeOf((await checked(arktype, {})).value).toEqualTypeOf<Order>();
  expectTypeOf((await checked(plain, {})).value).toEqualTypeOf<Record<string, unknown> | undefined>();
  expect(await checked(z.string().transform(Number), '7')).toEqual({ value: 7, problem: null });
});

test('a schema that cannot be used is refused when it is given, with a remedy', () => {
  expect(() => jsonSchemaOf(v.object({}))).toThrow('toStandardJsonSchema');
  expect(() => requireUsable({ type: 'object', if: {}, else: {} })).toThrow('Conditional schemas');
});
