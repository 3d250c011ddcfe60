import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** `JSON.parse('1e999')` gives Infinity, which `canonicalize` refuses. It counts as null, as it is stored. */
function canonicalJson(value: unknown): string {
  try {
    return canonicalize(value) ?? '';
  } catch {
    return canonicalize(JSON.parse(JSON.stringify(value))) ?? '';
  }
}

/**
 * SHA-256, in hexadecimal, of a JSON value in canonical form (RFC 8785), which ignores the order of members. By it a repeat of a `messageId` is told from one
 * with other content, and an approval is bound to what was asked about: for a tool call exactly `tool`, `arguments` and `executor`.
 * @param value has passed `jsonProblem` and `makeWellFormed`: `canonicalize` recurses without a limit and refuses lone surrogates
 */
export function digestOf(value: unknown): string {
  return hash('sha256', canonicalJson(value));
}
