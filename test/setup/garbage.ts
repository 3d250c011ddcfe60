import fc from 'fast-check';
import { z } from 'zod';

const nastyKey = fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', '', '\u0000', 'a\u0000b', '$ref');
const NASTY = [
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  "' OR 1=1 --",
  '{{7*7}}',
  '',
  'x'.repeat(5_000),
  -1,
  1.5,
  1e308,
  2 ** 53,
  null,
];
const leaf = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom<unknown>(...NASTY));

/** The members that a schema knows, wherever in it they are. */
function keysOf(schema: z.ZodType): string[] {
  const keys = new Set<string>();
  const walk = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return;
    for (const key of Object.keys((node as { properties?: object }).properties ?? {})) keys.add(key);
    for (const child of Object.values(node)) walk(child);
  };
  walk(z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' }));
  return [...keys, 'unknown_member'];
}

/** Objects that look like what the schema asks for, and are not. */
export function almost(schema: z.ZodType): fc.Arbitrary<unknown> {
  const key = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...keysOf(schema)) }, nastyKey);
  const shallow = fc.array(fc.tuple(key, leaf), { maxLength: 6 });
  const entry = fc.tuple(key, fc.oneof(leaf, shallow.map(asJsonObject)));
  return fc.oneof({ weight: 5, arbitrary: fc.array(entry, { maxLength: 8 }).map(asJsonObject) }, leaf);
}

/** Own members even for `__proto__`, as a parser makes them. */
function asJsonObject(entries: [string, unknown][]): unknown {
  return JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`);
}
