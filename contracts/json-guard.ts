import { LIMITS } from './limits.js';

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether brackets outside strings nest deeper than `maxDepth`. It does not parse: 100,000 brackets cost no more than reading them. */
export function nestsDeeper(text: string, maxDepth: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === OPEN_BRACKET || char === OPEN_BRACE) {
      if (++depth > maxDepth) return true;
    } else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth--;
  }
  return false;
}
const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE, COMMA] = [...'"\\[]{},'].map((char) =>
  char.charCodeAt(0),
);

/**
 * Whether a JSON text has more values than `maxValues`: a large body should be large by its texts. Millions of small values take seconds to
 * parse and to check, during which the process answers nobody. It does not parse, and stops at the bound.
 */
export function hasMoreValues(text: string, maxValues: number): boolean {
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if ((char === COMMA || char === OPEN_BRACKET || char === OPEN_BRACE) && ++values > maxValues) return true;
  }
  return false;
}

/** The index where the string that begins at `start` ends; the end of the text for an unterminated string. */
function endOfString(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at !== -1 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at === -1 ? text.length : at;
}

function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}

/** Whether a value parsed from well-formed text may need `makeWellFormed`: only an escape produces half of a surrogate pair. */
export function mayBeIllFormed(text: string): boolean {
  return text.includes('\\u');
}

/**
 * Whether `jsonProblem` may find a problem other than depth in a value parsed from well-formed text: NUL and ill-formed keys need an escape,
 * and every key that reaches a prototype contains `proto`. Searching the text is cheaper than visiting each member.
 */
export function mayBeUnfit(text: string): boolean {
  return text.includes('\\u') || text.includes('proto');
}

/**
 * Why the platform does not accept a parsed JSON value, or undefined: nesting deeper than `LIMITS.jsonDepth`, keys that reach an object's
 * prototype, NUL in a key or string (Postgres does not store it), a key that is not well-formed Unicode. The depth limit bounds the recursion.
 * @param depth the depth of the value in its document
 */
export function jsonProblem(value: unknown, depth = 1): string | undefined {
  if (typeof value === 'string') return value.includes('\0') ? 'holds a NUL character' : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > LIMITS.jsonDepth) return `is nested deeper than ${LIMITS.jsonDepth}`;
  if (Array.isArray(value)) return firstProblem(value, (item) => jsonProblem(item, depth + 1));
  return firstProblem(Object.keys(value), (key) => {
    const member = (value as Record<string, unknown>)[key];
    return keyProblem(key, member) ?? jsonProblem(member, depth + 1);
  });
}

function firstProblem<T>(items: readonly T[], problemOf: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = problemOf(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** A `constructor` without a `prototype` in it is an ordinary key. */
function keyProblem(key: string, member: unknown): string | undefined {
  if (key === '__proto__') return `holds the key ${key}`;
  if (key === 'constructor' && typeof member === 'object' && member !== null && Object.hasOwn(member, 'prototype')) {
    return 'holds the key constructor.prototype';
  }
  if (key.includes('\0')) return 'holds a NUL character';
  return key.isWellFormed() ? undefined : 'holds a key that is not well-formed Unicode';
}

/** Replaces lone surrogates in all strings, in place: Postgres accepts none. The value has passed `jsonProblem`, which bounds the recursion. */
export function makeWellFormed(root: unknown): void {
  if (typeof root !== 'object' || root === null) return;
  for (const key of Object.keys(root)) {
    const member = (root as Record<string, unknown>)[key];
    if (typeof member !== 'string') makeWellFormed(member);
    else if (!member.isWellFormed()) (root as Record<string, unknown>)[key] = member.toWellFormed();
  }
}
