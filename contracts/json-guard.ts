import { LIMITS } from './limits.js';

/**
 * Whether brackets nest deeper than `most`, without parsing: a text of 100,000 brackets must not cost more than reading it. Only
 * strings hide brackets.
 */
export function nestsDeeper(text: string, most: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === OPEN_BRACKET || char === OPEN_BRACE) {
      if (++depth > most) return true;
    } else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth--;
  }
  return false;
}
const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [...'"\\[]{}'].map((char) =>
  char.charCodeAt(0),
);

/** Where the string that begins at `start` ends; the end of the text when it does not. Hops from quote to quote. */
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

/**
 * Whether a value parsed from well-formed text may hold what `makeWellFormed` replaces: only an escape brings half of a surrogate
 * pair into it.
 */
export function mayBeIllFormed(text: string): boolean {
  return text.includes('\\u');
}

/**
 * Whether a value parsed from well-formed text may be one that `jsonProblem` has something against other than its depth: only an escape
 * spells what the text does not show, and every key that reaches a prototype has `proto` in it. One look at the text is cheaper than one
 * at each member.
 */
export function mayBeUnfit(text: string): boolean {
  return text.includes('\\u') || text.includes('proto');
}

/**
 * What makes a parsed JSON value unfit for the platform, or undefined: nesting deeper than `LIMITS.jsonDepth`, keys that reach
 * an object's prototype, NUL in a key or string (Postgres takes none), a key that is not well-formed Unicode.
 * @param depth how deep the value is in what it is a part of
 */
export function jsonProblem(root: unknown, depth = 1): string | undefined {
  return problemAt(root, depth);
}

/** The recursion is bounded: it ends where the nesting is too deep. */
function problemAt(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value.includes('\0') ? 'holds a NUL character' : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > LIMITS.jsonDepth) return `is nested deeper than ${LIMITS.jsonDepth}`;
  if (Array.isArray(value)) return firstProblem(value, (item) => problemAt(item, depth + 1));
  return firstProblem(Object.keys(value), (key) => {
    const member = (value as Record<string, unknown>)[key];
    return keyProblem(key, member) ?? problemAt(member, depth + 1);
  });
}

function firstProblem<T>(items: readonly T[], problemOf: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = problemOf(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** A `constructor` alone is a word like any other; with a `prototype` in it, it reaches further in careless code. */
function keyProblem(key: string, member: unknown): string | undefined {
  if (key === '__proto__') return `holds the key ${key}`;
  if (key === 'constructor' && typeof member === 'object' && member !== null && Object.hasOwn(member, 'prototype')) {
    return 'holds the key constructor.prototype';
  }
  if (key.includes('\0')) return 'holds a NUL character';
  return key.isWellFormed() ? undefined : 'holds a key that is not well-formed Unicode';
}

/**
 * Replaces what is left of surrogate pairs in all strings, in place: JSON for the database must be well-formed Unicode.
 * @param root a value that `jsonProblem` has nothing against, so the recursion is bounded
 */
export function makeWellFormed(root: unknown): void {
  if (typeof root !== 'object' || root === null) return;
  for (const key of Object.keys(root)) {
    const member = (root as Record<string, unknown>)[key];
    if (typeof member !== 'string') makeWellFormed(member);
    else if (!member.isWellFormed()) (root as Record<string, unknown>)[key] = member.toWellFormed();
  }
}
