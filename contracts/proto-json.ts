import { z } from 'zod';

/** Reading ProtoJSON, the JSON of A2A 1.0. */

/** Whether it is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `context_id` as `contextId`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** ProtoJSON takes the proto's own names (`context_id`) beside `contextId`. */
export function camelNames(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [camelCase(key), member]));
}

/** As `camelNames`; a null member is one that was not given. */
function protoMembers(value: unknown): unknown {
  const named = camelNames(value);
  if (!isObject(named)) return named;
  return Object.fromEntries(Object.entries(named).filter(([, member]) => member !== null));
}

/** A message of the proto. Unknown members are ignored. */
export function proto<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.preprocess(protoMembers, z.object(shape));
}

/** An empty string is proto's way to say nothing. */
export const OptionalText = z
  .string()
  .optional()
  .transform((text) => text || undefined);

/** The members that are there: an absent one is not `undefined`. */
export function given<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as never;
}
