/** JSON Schemas of `/openapi.json` as TypeScript types, with the names of members in camelCase. */

/** `agent_type` → `agentType`, as the SDK does it at run time (`sdk/wire/names.ts`). */
export const camelCase = (name) => name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_all, first) => first.toUpperCase());
const snakeCase = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
export const pascalCase = (name) => camelCase(name).replace(/^./, (first) => first.toUpperCase());

/** What requests and answers have from A2A, which has camelCase names itself. */
export const A2A_TYPES = {
  Task: '../../../contracts/a2a/a2a.js',
  Artifact: '../../../contracts/a2a/parts.js',
  Part: '../../../contracts/a2a/parts.js',
};

const REF = '#/components/schemas/';

/** The name of a component that the schema refers to; undefined for any other schema. */
export function refOf(schema) {
  return schema.$ref?.startsWith(REF) ? schema.$ref.slice(REF.length) : undefined;
}

/** The alternatives of a union. */
export const alternativesOf = (schema) => schema.anyOf ?? schema.oneOf;

/** The schema of the values of an object without members of its own; undefined for other schemas, `{}` for any value. */
export function recordValue(schema) {
  if (schema.type !== 'object' || schema.properties) return undefined;
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {};
}

/**
 * @param {object} schema a JSON Schema
 * @param {'input' | 'output'} io of answers, the values of an enumeration may become more (`Open`)
 * @returns {string} a type
 */
export function typeText(schema, io) {
  const ref = refOf(schema);
  if (ref) return ref;
  if (schema.$ref) throw new Error(`a reference that the client's types cannot have: ${schema.$ref}`);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return enumText(schema.enum, io);
  const alternatives = alternativesOf(schema);
  if (alternatives) return [...new Set(alternatives.map((one) => typeText(one, io)))].join(' | ');
  if (schema.allOf) return schema.allOf.map((one) => `(${typeText(one, io)})`).join(' & ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeText({ ...schema, type }, io)).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'number':
    case 'integer':
      return 'number';
    case 'array':
      return listText(typeText(schema.items ?? {}, io));
    case 'object':
      return objectText(schema, io);
    case undefined:
      return 'unknown';
    default:
      throw new Error(`a schema that the client's types cannot have: ${JSON.stringify(schema)}`);
  }
}

function listText(item) {
  return /[|&]/.test(item) ? `(${item})[]` : `${item}[]`;
}

function enumText(values, io) {
  const union = values.map((value) => JSON.stringify(value)).join(' | ');
  const isOpen = io === 'output' && values.length > 1 && values.every((value) => typeof value === 'string');
  return isOpen ? `Open<${union}>` : union;
}

function objectText(schema, io) {
  const value = recordValue(schema);
  if (value) return `Record<string, ${typeText(value, io)}>`;
  const required = new Set(schema.required);
  const members = Object.entries(schema.properties).map(([name, member]) => {
    if (io === 'input' && snakeCase(camelCase(name)) !== name)
      throw new Error(`the name ${name} cannot be converted back`);
    const doc = member.description ? `/** ${member.description.replaceAll('*/', '')} */ ` : '';
    const key = /^\w+$/.test(name) ? camelCase(name) : JSON.stringify(name);
    return `${doc}${key}${required.has(name) ? '' : '?'}: ${typeText(member, io)};`;
  });
  const others = typeof schema.additionalProperties === 'object' ? ' [name: string]: unknown;' : '';
  return `{ ${members.join(' ')}${others} }`;
}
