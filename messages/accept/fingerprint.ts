import { createHash } from 'node:crypto';

/** The value with the members of its objects in order, as JSON repeats them. */
function canonical(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(canonical);
  const ordered: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) ordered[key] = canonical((value as Record<string, unknown>)[key]);
  return ordered;
}

/**
 * SHA-256 of a JSON value, independent of the order of its members: tells a repeat from other content under one messageId.
 * @param value has passed `jsonProblem`: bounded in depth, without a key `__proto__`
 */
export function fingerprint(value: unknown): Buffer {
  return createHash('sha256')
    .update(JSON.stringify(canonical(value)))
    .digest();
}
