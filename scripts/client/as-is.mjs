/** Which members of a request or an answer are the caller's own documents, whose names are not converted. */
import { A2A_TYPES, alternativesOf, camelCase, recordValue, refOf } from './type-text.mjs';

/** A value that is left as it is. */
const AS_IS = true;
/** The name under which the values of an object are described whose names are data. */
const EACH = '*';

/**
 * The places in a value that are left as they are: an object with the names of members in camelCase, `true` for a whole value, undefined
 * for nothing. Lists are passed through.
 * @param {object} schema a JSON Schema
 * @param {Record<string, object>} components what its references name
 */
export function asIs(schema, components) {
  return pruned(placeOf(schema, components));
}

/** `true`, an object for a value of known form, undefined for a scalar. */
function placeOf(schema, components) {
  const ref = refOf(schema);
  if (ref) return ref in A2A_TYPES ? AS_IS : placeOf(components[ref], components);
  const alternatives = alternativesOf(schema) ?? schema.allOf;
  if (alternatives) return merged(alternatives.map((one) => placeOf(one, components)));
  if (schema.type === 'array') return placeOf(schema.items ?? {}, components);
  if (isAny(schema)) return AS_IS;
  const value = recordValue(schema);
  if (value) return isAny(value) ? AS_IS : { [EACH]: placeOf(value, components) ?? {} };
  if (!schema.properties) return undefined;
  if (typeof schema.additionalProperties === 'object') return AS_IS; // a document of A2A with members of its own: a skill
  const members = Object.entries(schema.properties).map(([name, one]) => [camelCase(name), placeOf(one, components)]);
  return Object.fromEntries(members.filter(([, place]) => place !== undefined));
}

/** A known form goes before any value: what a newer platform adds beside the known forms is converted like them. */
function merged(places) {
  const found = places.filter((place) => place !== undefined);
  const known = found.filter((place) => place !== AS_IS);
  if (known.length === 0) return found[0];
  const names = new Set(known.flatMap((place) => Object.keys(place)));
  return Object.fromEntries([...names].map((name) => [name, merged(known.map((place) => place[name]))]));
}

function pruned(place) {
  if (place === undefined || place === AS_IS) return place;
  if (EACH in place) return { [EACH]: pruned(place[EACH]) ?? {} };
  const members = Object.entries(place).map(([name, member]) => [name, pruned(member)]);
  const kept = members.filter(([, member]) => member !== undefined);
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}

function isAny(schema) {
  return Object.keys(schema).every((key) => key === 'description' || key === 'default');
}
