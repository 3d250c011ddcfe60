import { isObject } from '../json-guard.js';
import { ALTERNATIVES, MAX_VALUES, valuesOf } from './flat-schema.js';

const SCALAR_TYPES = ['string', 'number', 'integer', 'boolean', 'null'];
/** Keywords that nest, refer or combine: a flat schema has none. */
const NESTING_KEYWORDS = ['$ref', 'properties', 'patternProperties', 'allOf', 'not', 'if', 'dependentSchemas'];
const MAX_PROPERTIES = 100;

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
export function shapeProblem(schema: Record<string, unknown>): string | null {
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
