import { z } from 'zod';
import { isObject } from '../json-guard.js';

/** Helpers to parse ProtoJSON, the JSON of A2A 1.0. */

/** `context_id` as `contextId`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Converts keys to camel case: ProtoJSON accepts the names of the proto (`context_id`) beside `contextId`. */
export function camelNames(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [camelCase(key), member]));
}

/** As `camelNames`, without null members: in ProtoJSON null means absent. */
function protoMembers(value: unknown): unknown {
  const named = camelNames(value);
  if (!isObject(named)) return named;
  return Object.fromEntries(Object.entries(named).filter(([, member]) => member !== null));
}

/** The schema of a proto message. Unknown members are ignored. */
export function proto<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.preprocess(protoMembers, z.object(shape));
}

/** Text for which, as in proto, an empty string means absent. */
export const OptionalText = z
  .string()
  .optional()
  .transform((text) => text || undefined);

/** A copy of an object without its undefined members. */
export function defined<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as never;
}
