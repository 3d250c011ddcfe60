import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** JSON has no infinity, but `JSON.parse('1e999')` gives one: it counts as null, which is what is stored. */
function canonicalJson(value: unknown): string {
  try {
    return canonicalize(value) ?? '';
  } catch {
    return canonicalize(JSON.parse(JSON.stringify(value))) ?? '';
  }
}

/**
 * SHA-256 of a JSON value in canonical form (RFC 8785): the order of members does not count. It tells a repeat from other content under
 * one `messageId`.
 * @param value has passed `jsonProblem` and `makeWellFormed`: `canonicalize` recurses without a limit and refuses lone surrogates
 */
export function fingerprint(value: unknown): Buffer {
  return createHash('sha256').update(canonicalJson(value)).digest();
}
