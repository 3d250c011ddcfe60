import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { isObject } from '../../contracts/a2a/proto-json.js';
import type { InputRequestRow } from '../read/rows.js';

const SCALAR_KEYWORDS = new Set([
  ...['type', 'title', 'description', 'enum', 'const', 'format'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minItems', 'maxItems', 'uniqueItems'],
]);
const SCALAR_TYPES = ['string', 'number', 'integer', 'boolean', 'null'];
/** Keywords that list what a property may be: one of several values or types, or nothing. */
const ALTERNATIVES = ['oneOf', 'anyOf'] as const;
/** Keywords that nest, refer or combine: a flat schema has none. */
const NESTING_KEYWORDS = ['$ref', 'properties', 'patternProperties', 'allOf', 'not', 'if', 'dependentSchemas'];
const MAX_PROPERTIES = 100;
/** Of an enum, and of a list that is filled in: each value of the one is compared with each of the other, and the values of a list with each other. */
const MAX_VALUES = 1_000;

function pick(schema: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => SCALAR_KEYWORDS.has(key)));
}

function simpleProperty(property: Record<string, unknown>): Record<string, unknown> {
  const { maxItems = MAX_VALUES, ...rest } = pick(property);
  const flat = { ...rest, maxItems: typeof maxItems === 'number' ? Math.min(maxItems, MAX_VALUES) : maxItems };
  return isObject(property.items) ? { ...flat, items: pick(property.items) } : flat;
}

/** The values that an alternative lists; null where it is a type with other values too. */
function valuesOf(alternative: Record<string, unknown>): unknown[] | null {
  if ('const' in alternative) return [alternative.const];
  if (Array.isArray(alternative.enum)) return alternative.enum;
  return alternative.type === 'null' ? [null] : null;
}

const alternativesOf = ({ oneOf, anyOf }: Record<string, unknown>): Record<string, unknown>[] =>
  [oneOf ?? anyOf ?? []].flat().filter(isObject);

/** A property without alternatives: with all values of theirs, or all types where one of them at least is not a list of values. */
function merged(property: Record<string, unknown>): Record<string, unknown> {
  const alternatives = alternativesOf(property);
  if (alternatives.length === 0) return property;
  const lists = alternatives.map(valuesOf);
  if (lists.every((values) => values !== null)) return { ...property, enum: lists.flat() };
  const types = [...new Set(alternatives.flatMap(({ type }) => type ?? []))];
  const [only, ...others] = alternatives.filter(({ type }) => type !== 'null');
  if (only && others.length === 0) return { ...only, ...property, ...(only.type !== undefined && { type: types }) };
  return alternatives.every(({ type }) => type !== undefined) ? { ...property, type: types } : property;
}

/** A property of a form as it is checked, and as people choose its value. */
export interface FlatProperty {
  /** Without alternatives: `enum` has all values that it may have, or `type` all types. */
  schema: Record<string, unknown>;
  /** The titles of values in `enum`, by their JSON. */
  titles: ReadonlyMap<string, string>;
}

/** A property of a flat form, whose alternatives become one list of values or of types. */
export function flatProperty(property: unknown): FlatProperty {
  if (!isObject(property)) return { schema: {}, titles: new Map() };
  const titled = alternativesOf(property).flatMap(({ const: value, title }): [string, string][] =>
    value !== undefined && typeof title === 'string' ? [[JSON.stringify(value), title]] : [],
  );
  return { schema: simpleProperty(merged(property)), titles: new Map(titled) };
}

/**
 * Compiles the flat part of a form's JSON Schema: named properties of simple types. It has no references and no regular expressions, because
 * an agent could write one that never ends.
 */
function compile(schema: Record<string, unknown>, allErrors = false): ValidateFunction {
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  return new Ajv({ allErrors, strict: false, validateFormats: false, addUsedSchema: false }).compile({
    type: 'object',
    properties: Object.fromEntries(properties.map(([name, property]) => [name, flatProperty(property).schema])),
    ...(Array.isArray(schema.required) && { required: schema.required }),
    ...(typeof schema.additionalProperties === 'boolean' && { additionalProperties: schema.additionalProperties }),
  });
}

function scalarProblem(schema: unknown, path: string): string | null {
  if (!isObject(schema)) return `${path} must be an object`;
  const nested = NESTING_KEYWORDS.find((keyword) => keyword in schema);
  if (nested !== undefined) return `${path}: the form must be flat, without ${nested}`;
  if (Array.isArray(schema.enum) && schema.enum.length > MAX_VALUES)
    return `${path}.enum must have at most ${MAX_VALUES} values`;
  const types = schema.type === undefined ? [] : [schema.type].flat();
  const other = types.find((type) => !SCALAR_TYPES.includes(type as string));
  return other === undefined ? null : `${path}.type must not be ${JSON.stringify(other)}`;
}

function simplePropertyProblem(property: unknown, path: string): string | null {
  if (!isObject(property) || property.type !== 'array') return scalarProblem(property, path);
  return scalarProblem({ ...property, type: undefined }, path) ?? scalarProblem(property.items, `${path}.items`);
}

/** Why the alternatives of a property cannot be shown as one field. */
function alternativesProblem(property: Record<string, unknown>, path: string): string | null {
  for (const keyword of ALTERNATIVES) {
    const listed = property[keyword];
    if (listed === undefined) continue;
    if (!Array.isArray(listed) || listed.length === 0) return `${path}.${keyword} must be a list`;
    for (const [index, alternative] of listed.entries()) {
      const at = `${path}.${keyword}[${index}]`;
      const nested = ALTERNATIVES.find((one) => isObject(alternative) && one in alternative);
      if (nested !== undefined) return `${at}: the form must be flat, without ${nested} in ${keyword}`;
      const problem = simplePropertyProblem(alternative, at);
      if (problem !== null) return problem;
    }
    if (listed.flatMap(valuesOf).length > MAX_VALUES)
      return `${path}.${keyword} must have at most ${MAX_VALUES} values`;
  }
  return null;
}

function propertyProblem(property: unknown, path: string): string | null {
  return simplePropertyProblem(property, path) ?? (isObject(property) ? alternativesProblem(property, path) : null);
}

/** Why a schema is not a flat form, which is an object whose named properties are scalars or lists of scalars. */
function shapeProblem(schema: Record<string, unknown>): string | null {
  if (schema.type !== undefined && schema.type !== 'object') {
    return `type must be object, not ${JSON.stringify(schema.type)}`;
  }
  const nested = NESTING_KEYWORDS.find((keyword) => keyword !== 'properties' && keyword in schema);
  if (nested !== undefined) return `the form must be flat, without ${nested}`;
  const { properties, required = [] } = schema;
  if (!isObject(properties)) return 'properties must be an object';
  const named = Object.entries(properties);
  if (named.length > MAX_PROPERTIES) return `properties must be at most ${MAX_PROPERTIES}`;
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string')) {
    return 'required must be a list of names';
  }
  for (const [name, property] of named) {
    const problem = propertyProblem(property, `properties.${name.slice(0, 100)}`);
    if (problem !== null) return problem;
  }
  return null;
}

/** Why a form's schema cannot be used; null when it can. */
export function schemaProblem(schema: Record<string, unknown>): string | null {
  const problem = shapeProblem(schema);
  if (problem !== null) return problem;
  try {
    compile(schema);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Why `data` does not fit the form; null when it fits. Without a schema `fields` lists the permitted names. */
export function formProblem(
  form: Pick<InputRequestRow, 'schema' | 'fields'>,
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

/** What is wrong with an answer to a form. */
export interface FormProblem {
  /** Absent where it is about no field. */
  field?: string;
  /** A sentence for the person who fills it in. */
  text: string;
}

const TYPE_TEXTS: Record<string, string> = {
  number: 'A number is needed.',
  integer: 'A whole number is needed.',
};
/** What an error of Ajv says to a person, by its keyword; `{limit}` is that of the schema. */
const PROBLEM_TEXTS: Record<string, string> = {
  required: 'This is needed.',
  enum: 'One of the values offered is needed.',
  const: 'The value offered is needed.',
  minimum: 'At least {limit} is needed.',
  maximum: 'At most {limit} is allowed.',
  exclusiveMinimum: 'More than {limit} is needed.',
  exclusiveMaximum: 'Less than {limit} is needed.',
  multipleOf: 'A multiple of {limit} is needed.',
  minLength: 'At least {limit} characters are needed.',
  maxLength: 'At most {limit} characters are allowed.',
  minItems: 'At least {limit} values are needed.',
  maxItems: 'At most {limit} values are allowed.',
  uniqueItems: 'Each value may stand here once only.',
};

function problemText({ keyword, params, message }: ErrorObject): string {
  if (keyword === 'type') return TYPE_TEXTS[params.type] ?? `It ${message}.`;
  const text = PROBLEM_TEXTS[keyword] ?? `It ${message}.`;
  return text.replace('{limit}', String(params.limit ?? params.multipleOf));
}

function problemOf(error: ErrorObject): FormProblem {
  const [, pointer] = error.instancePath.split('/');
  const field = error.keyword === 'required' ? error.params.missingProperty : pointer;
  const text = problemText(error);
  return field === undefined ? { text } : { field: field.replaceAll('~1', '/').replaceAll('~0', '~'), text };
}

/** All that does not fit a form with a schema, in sentences for the person who fills it in: of each field the first. */
export function formProblems(
  { schema }: { schema?: Record<string, unknown> | undefined },
  data: Record<string, unknown>,
): FormProblem[] {
  if (!schema) return [];
  const validate = compile(schema, true);
  if (validate(data)) return [];
  const problems = (validate.errors ?? []).map(problemOf);
  return problems.filter(({ field }, index) => problems.findIndex((other) => other.field === field) === index);
}
