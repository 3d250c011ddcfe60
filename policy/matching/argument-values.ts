import { type Budget, SEARCHED_CHARS } from './budget.js';
import type { Facts } from './facts.js';

/** A value that conditions compare with. */
export type Scalar = string | number | boolean | null;

/** Units of `Budget` to look at one value. */
const VISIT = 5;

/** Units of `Budget` to look at a value that was found: whether a text is a number is known only at its end. */
export function lookCost(value: unknown): number {
  return VISIT + (typeof value === 'string' ? value.length / SEARCHED_CHARS : 0);
}

/**
 * The values at a path; `*` stands for every member. Each value on the way costs, also where nothing is found behind it.
 * @returns undefined where that would cost too much to find out
 */
export function valuesAt(
  value: unknown,
  path: readonly string[],
  budget: Budget,
  from = 0,
  found: unknown[] = [],
): unknown[] | undefined {
  if (budget.isSpent) return undefined;
  const key = path[from];
  budget.spend(key === undefined ? lookCost(value) : VISIT);
  if (key === undefined) found.push(value);
  else if (typeof value !== 'object' || value === null) return found;
  else if (key === '*') {
    for (const member of Array.isArray(value) ? value : Object.values(value))
      if (!valuesAt(member, path, budget, from + 1, found)) return undefined;
  } else if (Object.hasOwn(value, key))
    return valuesAt((value as Record<string, unknown>)[key], path, budget, from + 1, found);
  return found;
}

/** What `valueAt` gives where there is no value. */
export const MISSING = Symbol('missing');

/** As `valuesAt`, for a path without `*`. */
export function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return MISSING;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

/** The number that a value stands for; a text counts where it is one, so that `"5000"` is not less than 1000. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

/** Undefined for a list or an object: it may hold the expected value, and whoever gets it may take that out. */
export function isEqual(value: unknown, expected: Scalar): boolean | undefined {
  if (typeof value === 'object' && value !== null) return undefined;
  if (typeof expected === 'number') return numberOf(value) === expected;
  if (typeof expected === 'string' && typeof value === 'number') return value === numberOf(expected);
  return value === expected;
}

/** A text that is the same for values of which `isEqual` holds, whatever their types: 5 and `"5.0"` are `5`. */
export function comparedText(value: Scalar): string {
  return String(numberOf(value) ?? value);
}

/** The text that a regular expression is asked about. */
export function matchedText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

/** How each kind of operator reads the value of an argument; undefined: nobody can tell. */
const READINGS = {
  equal_arguments: (value: unknown) =>
    typeof value === 'object' && value !== null ? undefined : [comparedText(value as Scalar)],
  /** A list contains a text where an item equals it, which a number may too. */
  containing_arguments: (value: unknown) => {
    if (Array.isArray(value)) return value.every((item) => typeof item === 'string') ? value : undefined;
    if (typeof value === 'object' && value !== null) return undefined;
    return typeof value === 'string' ? [value] : [];
  },
  matched_arguments: (value: unknown) =>
    typeof value === 'object' && value !== null ? undefined : [matchedText(value)],
  amounts: (value: unknown) => {
    const number = numberOf(value);
    return number === undefined ? undefined : [number];
  },
} satisfies Record<string, (value: unknown) => readonly (string | number)[] | undefined>;

export type ArgumentFact = keyof typeof READINGS;

/** Whether a fact is one of the arguments, which has a path. */
export function isArgumentFact(fact: string): fact is ArgumentFact {
  return Object.hasOwn(READINGS, fact);
}

/** The values at a path of the arguments, as conditions compare them; `any`: nobody can tell. */
export function argumentValues(
  fact: ArgumentFact,
  path: string,
  { request, budget }: Facts,
): readonly (string | number)[] | 'any' {
  const found = valuesAt(request.arguments ?? {}, path.split('.'), budget);
  if (!found) return 'any';
  const values: (string | number)[] = [];
  for (const value of found) {
    const compared = READINGS[fact](value);
    if (compared === undefined) return 'any';
    budget.spend(compared.length);
    for (const one of compared) values.push(one);
  }
  return values;
}
