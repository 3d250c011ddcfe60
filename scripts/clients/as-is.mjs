/** Which members of a request or an answer the TypeScript client leaves as they are: the caller's own documents, and what A2A defines. */
import { schemas } from './description.mjs';

/** Types that the SDK takes from A2A, whose names are in camelCase on the wire as well. */
export const A2A_TYPES = ['Task', 'Artifact', 'Part'];

/** `agent_type` → `agentType`, as the SDK does it at run time (`sdk/wire/names.ts`). */
export const camelCase = (name) => name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_all, first) => first.toUpperCase());

/** The places in a value of the schema that are left as they are, as an `AsIs` of `sdk/wire/names.ts`; undefined where there are none. */
export function asIs(schema) {
  const places = JSON.stringify(placesIn(schema) ?? {});
  const isEmpty = (place) => Object.keys(place).length === 0 && place !== true;
  return JSON.parse(places, (name, place) => (name !== '*' && isEmpty(place) ? undefined : place));
}

/** `true` for a value that is left as it is, an object for one of known form, undefined for a scalar. */
function placesIn(schema) {
  const { $ref, anyOf, oneOf, type, items = {}, properties, additionalProperties: others } = schema;
  if ($ref) return A2A_TYPES.includes(typeName($ref)) || placesIn(schemas[typeName($ref)]);
  if (anyOf ?? oneOf) return merged((anyOf ?? oneOf).map(placesIn));
  if (type === 'array') return placesIn(items);
  if (isAny(schema)) return true;
  if (type !== 'object') return undefined;
  const hasTypedMembers = typeof others === 'object' && !isAny(others);
  if (!properties) return hasTypedMembers ? { '*': placesIn(others) ?? {} } : true; // the names are data
  if (typeof others === 'object') return true; // a document of A2A with members of its own: a skill
  return Object.fromEntries(Object.entries(properties).map(([name, member]) => [camelCase(name), placesIn(member)]));
}

/** A known form goes before any value: what a newer platform adds beside the known forms is converted like them. */
function merged(places) {
  const known = places.filter((place) => typeof place === 'object');
  if (known.length === 0) return places.find((place) => place !== undefined);
  const names = new Set(known.flatMap(Object.keys));
  return Object.fromEntries([...names].map((name) => [name, merged(known.map((place) => place[name]))]));
}

const typeName = (reference) => reference.split('/').at(-1);
const isAny = (schema) => Object.keys(schema).every((key) => key === 'description' || key === 'default');
