import { z } from 'zod';
import type { StandardIssue, StandardSchema } from './standard-schema.js';

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What describes and checks input: a schema of zod, valibot, arktype or another library with Standard Schema, or a plain JSON Schema. */
export type InputSchema = StandardSchema | JsonSchema;

/** The values that have passed a schema. Those of a plain JSON Schema have no type of their own. */
export type SchemaOutput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Record<string, unknown>;

/** A value that has passed its schema, or what is wrong with it in a sentence for each problem. */
export type Checked<Output> = { value: Output; problem: null } | { value?: undefined; problem: string };

/** Checks a value. Schemas may transform it. */
export async function checked<Schema extends InputSchema>(
  schema: Schema,
  value: unknown,
): Promise<Checked<SchemaOutput<Schema>>> {
  const result = await standardOf(schema)['~standard'].validate(value);
  if (result.issues) return { problem: result.issues.map(sentence).join('; ') };
  return { value: result.value as SchemaOutput<Schema>, problem: null };
}

/**
 * The JSON Schema of the values that a schema takes.
 * @throws TypeError for a schema that cannot describe itself
 */
export function jsonSchemaOf(schema: InputSchema): Record<string, unknown> {
  const { $schema: _dialect, ...described } = isStandard(schema) ? describedBy(schema) : schema;
  return described;
}

function describedBy(schema: StandardSchema): Record<string, unknown> {
  const { jsonSchema, vendor } = schema['~standard'];
  if (jsonSchema) return jsonSchema.input({ target: 'draft-2020-12' });
  const remedy =
    vendor === 'valibot' ? 'wrap it in toStandardJsonSchema of @valibot/to-json-schema' : 'use a newer one';
  throw new TypeError(`this schema of ${vendor} has no JSON Schema (Standard JSON Schema 1): ${remedy}`);
}

/** Also of another copy of a library than the SDK's. Types of arktype are functions. */
function isStandard(schema: InputSchema): schema is StandardSchema {
  return '~standard' in schema;
}

const compiled = new WeakMap<JsonSchema, StandardSchema>();

/** @throws Error for a JSON Schema with keywords that cannot be checked */
function standardOf(schema: InputSchema): StandardSchema {
  if (isStandard(schema)) return schema;
  const known = compiled.get(schema) ?? z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  compiled.set(schema, known);
  return known;
}

/** A JSON Schema that says anything about objects has one of these; without them it takes everything. */
const KEYWORDS = [
  'type',
  'properties',
  'required',
  '$ref',
  '$defs',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'enum',
  'const',
  'description',
  'title',
];

/** Refuses a schema that cannot be used, when it is given rather than with the first message. @throws Error */
export function requireUsable(schema: InputSchema): void {
  const keys = Object.keys(schema);
  if (!isStandard(schema) && keys.length > 0 && !keys.some((key) => KEYWORDS.includes(key)))
    throw new TypeError(
      `{ ${keys.join(', ')} } is no JSON Schema: write { type: 'object', properties: { … } }, or use a schema library`,
    );
  standardOf(schema);
}

function sentence({ message, path = [] }: StandardIssue): string {
  const names = path.map((part) => String(typeof part === 'object' ? part.key : part));
  return names.length > 0 ? `${message} at ${names.join('.')}` : message;
}
