import { isObject } from '../json-guard.js';

const SCALAR_KEYWORDS = new Set([
  ...['type', 'title', 'description', 'enum', 'const', 'format'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minItems', 'maxItems', 'uniqueItems'],
]);
/** Keywords that list what a property may be: one of several values or types, or nothing. */
export const ALTERNATIVES = ['oneOf', 'anyOf'] as const;
/** Of an enum, and of a list that is filled in: each value of the one is compared with each of the other, and the values of a list with each other. */
export const MAX_VALUES = 1_000;

function pick(schema: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => SCALAR_KEYWORDS.has(key)));
}

function simpleProperty(property: Record<string, unknown>): Record<string, unknown> {
  const { maxItems = MAX_VALUES, ...rest } = pick(property);
  const flat = { ...rest, maxItems: typeof maxItems === 'number' ? Math.min(maxItems, MAX_VALUES) : maxItems };
  return isObject(property.items) ? { ...flat, items: pick(property.items) } : flat;
}

/** The values that an alternative lists; null where it is a type with other values too. */
export function valuesOf(alternative: Record<string, unknown>): unknown[] | null {
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
