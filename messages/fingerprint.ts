import { createHash } from 'node:crypto';

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, canonical(item)]));
}

/** SHA-256 of a JSON value, independent of the order of its members: tells a repeat from other content under one messageId. */
export function fingerprint(value: unknown): Buffer {
  return createHash('sha256')
    .update(JSON.stringify(canonical(value)))
    .digest();
}
