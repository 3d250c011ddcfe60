import { Ajv, type ValidateFunction } from 'ajv';

const SCALAR_KEYWORDS = [
  'type',
  'title',
  'description',
  'enum',
  'const',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'uniqueItems',
];
const MAX_PROPERTIES = 100;

function pick(schema: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => SCALAR_KEYWORDS.includes(key)));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function flatProperty(property: unknown): Record<string, unknown> {
  if (!isObject(property)) return {};
  const flat = pick(property);
  return isObject(property.items) ? { ...flat, items: pick(property.items) } : flat;
}

/**
 * The flat part of a form's JSON Schema: named properties of simple types. What an agent may not use is left out: references,
 * and regular expressions, which could be made to run for ever.
 */
function flatten(schema: Record<string, unknown>): Record<string, unknown> {
  const properties = isObject(schema.properties) ? Object.entries(schema.properties).slice(0, MAX_PROPERTIES) : [];
  return {
    type: 'object',
    properties: Object.fromEntries(properties.map(([name, property]) => [name, flatProperty(property)])),
    ...(Array.isArray(schema.required) && { required: schema.required }),
    ...(typeof schema.additionalProperties === 'boolean' && { additionalProperties: schema.additionalProperties }),
  };
}

function compile(schema: Record<string, unknown>): ValidateFunction {
  return new Ajv({ allErrors: false, strict: false, validateFormats: false, addUsedSchema: false }).compile(
    flatten(schema),
  );
}

/** Why a form's schema cannot be used; null when it can. */
export function schemaProblem(schema: Record<string, unknown>): string | null {
  try {
    compile(schema);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Why `data` does not fit the form; null when it fits. `fields` bounds the names where there is no schema. */
export function formProblem(
  form: { schema: Record<string, unknown> | null; fields: { id: string }[] | null },
  data: Record<string, unknown>,
): string | null {
  if (form.schema) {
    const validate = compile(form.schema);
    if (validate(data)) return null;
    const [error] = validate.errors ?? [];
    return `${error?.instancePath.slice(1) || 'data'} ${error?.message ?? 'does not fit the schema'}`;
  }
  if (!form.fields) return null;
  const known = new Set(form.fields.map((field) => field.id));
  const unknown = Object.keys(data).find((name) => !known.has(name));
  return unknown === undefined ? null : `${unknown} is not a field of the form`;
}
