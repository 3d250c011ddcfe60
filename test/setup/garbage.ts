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

/** As much of a JSON Schema as `plausible` looks at. */
interface JsonSchema {
  type?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
}

function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' }) as JsonSchema;
}

/** A value of the right form, required members only. */
function plausible(schema: JsonSchema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf?.[0]) return plausible(schema.anyOf[0]);
  switch (schema.type) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((key) => [key, plausible(schema.properties?.[key] ?? {})]));
    case 'array':
      return [plausible(schema.items ?? {})];
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, 1);
    case 'boolean':
      return true;
    default:
      return 'x';
  }
}

/** Values of the right form in which one member, at the top, is not what it should be. */
export function oneOff(schema: z.ZodType): unknown[] {
  const described = jsonSchemaOf(schema);
  const right = plausible(described);
  const keys = Object.keys(described.anyOf?.[0]?.properties ?? described.properties ?? {});
  return keys.flatMap((key) => NASTY.map((value) => ({ ...(right as object), [key]: value })));
}

/** The members that a schema knows, wherever in it they are. */
function keysOf(schema: z.ZodType): string[] {
  const keys = new Set<string>();
  const walk = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return;
    for (const key of Object.keys((node as JsonSchema).properties ?? {})) keys.add(key);
    for (const child of Object.values(node)) walk(child);
  };
  walk(jsonSchemaOf(schema));
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
