import { LIMITS } from '../contracts/limits.js';

/**
 * What makes a parsed JSON value unfit for the platform, or undefined: nesting deeper than `LIMITS.jsonDepth`, keys that reach
 * an object's prototype, NUL in a key or string (Postgres takes none), a key that is not well-formed Unicode. Walks without
 * recursion.
 */
export function jsonProblem(root: unknown): string | undefined {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const { value, depth } = entry;
    if (typeof value === 'string' && value.includes('\0')) return 'holds a NUL character';
    if (typeof value !== 'object' || value === null) continue;
    if (depth > LIMITS.jsonDepth) return `is nested deeper than ${LIMITS.jsonDepth}`;
    for (const [key, member] of Object.entries(value)) {
      const problem = keyProblem(key, member);
      if (problem) return problem;
      open.push({ value: member, depth: depth + 1 });
    }
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
  for (const [key, member] of Object.entries(root)) {
    if (typeof member !== 'string') makeWellFormed(member);
    else if (!member.isWellFormed()) (root as Record<string, unknown>)[key] = member.toWellFormed();
  }
}
