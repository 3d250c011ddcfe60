/**
 * The one place where names change: members are snake_case on the wire and camelCase in TypeScript. Documents of the caller (`metadata`,
 * arguments, the values of a form) and what comes from A2A keep their names.
 */

/**
 * The places of a value that are left as they are: an object by the members' names in camelCase, `true` for a whole value. Lists are passed
 * through; `'*'` stands for the values of an object whose names are data.
 */
export type AsIs = true | { readonly [name: string]: AsIs };

/** `agent_type` for `agentType`. */
export function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** `agentType` for `agent_type`. */
function camelName(name: string): string {
  return name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_all, first: string) => first.toUpperCase());
}

/** A value with the names of the wire. Undefined members are left out. */
export function toWire(value: unknown, asIs?: AsIs): unknown {
  return converted(value, wireName, (name) => name, asIs);
}

/** A value of the wire with names in camelCase. The type is the caller's promise; nothing is checked. */
export function fromWire<T>(value: unknown, asIs?: AsIs): T {
  return converted(value, camelName, camelName, asIs) as T;
}

/** @param placeName the name of a member in `asIs` */
function converted(
  value: unknown,
  rename: (name: string) => string,
  placeName: (name: string) => string,
  asIs: AsIs | undefined,
): unknown {
  if (asIs === true || !isPlain(value)) return value;
  if (Array.isArray(value)) return value.map((item) => converted(item, rename, placeName, asIs));
  const each = asIs?.['*'];
  const members = Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined) return [];
    if (each) return [[name, converted(member, rename, placeName, each)]];
    const place = asIs && Object.hasOwn(asIs, placeName(name)) ? asIs[placeName(name)] : undefined;
    return [[rename(name), converted(member, rename, placeName, place)]];
  });
  return Object.fromEntries(members);
}

/** Dates and other objects with a class are the caller's: `JSON.stringify` writes them. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}
