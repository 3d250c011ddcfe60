import { hash } from 'node:crypto';
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
 * SHA-256, in hexadecimal, of a JSON value in canonical form (RFC 8785), which ignores the order of members. It tells a repeat of a `messageId` from
 * other content, and binds an approval to what was asked about: of a tool call exactly `tool`, `arguments` and `executor`.
 * @param value has passed `jsonProblem` and `makeWellFormed`: `canonicalize` recurses without a limit and refuses lone surrogates
 */
export function digestOf(value: unknown): string {
  return hash('sha256', canonicalJson(value));
}
