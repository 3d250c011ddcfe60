import { LIMITS } from '../contracts/limits.js';

/**
 * What makes a parsed JSON value unfit for storing, or undefined: nesting deeper than `LIMITS.jsonDepth`, keys of an object's
 * prototype, NUL in a key or string (Postgres takes none). Walks without recursion.
 */
export function jsonProblem(root: unknown): string | undefined {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const { value, depth } = entry;
    if (typeof value === 'string' && value.includes('\0')) return 'holds a NUL character';
    if (typeof value !== 'object' || value === null) continue;
    if (depth > LIMITS.jsonDepth) return `is nested deeper than ${LIMITS.jsonDepth}`;
    for (const [key, member] of Object.entries(value)) {
      if (reachesPrototype(key, member)) return `holds the key ${key}`;
      if (key.includes('\0')) return 'holds a NUL character';
      open.push({ value: member, depth: depth + 1 });
    }
  }
  return undefined;
}

/** Keys that could reach an object's prototype in careless code further on; a `constructor` of a car is none. */
function reachesPrototype(key: string, member: unknown): boolean {
  if (key === '__proto__') return true;
  return key === 'constructor' && typeof member === 'object' && member !== null && Object.hasOwn(member, 'prototype');
}

/**
 * Replaces what is left of surrogate pairs in all strings, in place: JSON for the database must be well-formed Unicode.
 * @param root an object or array no deeper than `jsonProblem` allows
 */
export function makeWellFormed(root: object): void {
  for (const [key, member] of Object.entries(root)) {
    if (typeof member === 'string' && !member.isWellFormed())
      (root as Record<string, unknown>)[key] = member.toWellFormed();
    else if (typeof member === 'object' && member !== null) makeWellFormed(member);
  }
}
