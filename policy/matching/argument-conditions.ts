import type { ArgumentCondition } from '../../contracts/api/policies/policy-match.js';
import type { Budget } from './budget.js';
import { compileRegex } from './regex.js';

type Scalar = string | number | boolean | null;

/** Whether one value fits; undefined: nobody can tell, or it would cost too much to find out. */
type ValueTest = (value: unknown, budget: Budget) => boolean | undefined;

/** The values at a path; `*` stands for every member. The depth and size of arguments are bounded at the edge. */
export function valuesAt(value: unknown, path: readonly string[], from = 0): unknown[] {
  const key = path[from];
  if (key === undefined) return [value];
  if (typeof value !== 'object' || value === null) return [];
  if (key === '*') return Object.values(value).flatMap((member) => valuesAt(member, path, from + 1));
  return Object.hasOwn(value, key) ? valuesAt((value as Record<string, unknown>)[key], path, from + 1) : [];
}

const MISSING = Symbol('missing');

/** As `valuesAt`, for a path without `*`. */
function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return MISSING;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

/** The number that a value stands for; a text counts where it is one, so that `"5000"` is not less than 1000. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

/** Undefined for a list or an object, in which the expected value may be: whoever gets it may take it out. */
function isEqual(value: unknown, expected: Scalar): boolean | undefined {
  if (typeof value === 'object' && value !== null) return undefined;
  if (typeof expected === 'number') return numberOf(value) === expected;
  if (typeof expected === 'string' && typeof value === 'number') return value === numberOf(expected);
  return value === expected;
}

/** A text that is the same for values of which `isEqual` holds, whatever their types: 5 and `"5.0"` are `5`. */
export function comparedText(value: Scalar): string {
  return String(numberOf(value) ?? value);
}

function negated(truth: boolean | undefined): boolean | undefined {
  return truth === undefined ? undefined : !truth;
}

function isOneOf(value: unknown, expected: readonly Scalar[]): boolean | undefined {
  return typeof value === 'object' && value !== null ? undefined : expected.some((one) => isEqual(value, one));
}

const COMPARISONS = {
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
};

/** Less than 0, 0 or more than 0; undefined for values whose order nobody can tell: `"5,000"`, `[5000]`. */
function orderOf(value: unknown, expected: number | string): number | undefined {
  if (typeof expected === 'number') {
    const number = numberOf(value);
    return number === undefined ? undefined : Math.sign(number - expected);
  }
  if (typeof value !== 'string') return undefined;
  return value < expected ? -1 : Number(value > expected);
}

function compares(op: keyof typeof COMPARISONS, value: unknown, expected: number | string): boolean | undefined {
  const order = orderOf(value, expected);
  return order === undefined ? undefined : COMPARISONS[op](order);
}

/** In a list: one item that is equal. Undefined for what may hold it deeper inside. */
function contains(value: unknown, expected: Scalar, budget: Budget): boolean | undefined {
  if (Array.isArray(value)) {
    if (!budget.take(value.length)) return undefined;
    const items = value.map((item) => isEqual(item, expected));
    return items.includes(true) || (items.includes(undefined) ? undefined : false);
  }
  if (typeof value === 'object' && value !== null) return undefined;
  if (typeof value !== 'string' || typeof expected !== 'string') return false;
  return budget.take(value.length / 16) ? value.includes(expected) : undefined;
}

function valueTest(condition: ArgumentCondition): ValueTest {
  const { op, value: expected } = condition;
  switch (op) {
    case 'eq':
      return (value) => isEqual(value, expected);
    case 'ne':
      return (value) => negated(isEqual(value, expected));
    case 'in':
      return (value) => isOneOf(value, expected);
    case 'contains':
      return (value, budget) => contains(value, expected, budget);
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return (value) => compares(op, value, expected);
    case 'matches': {
      const regex = compileRegex(expected);
      return (value, budget) => {
        const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
        return budget.take(text.length * regex.charCost) ? regex.test(text) : undefined;
      };
    }
    default:
      return condition satisfies never;
  }
}

/**
 * Whether a condition holds for arguments: for one of the values at its path where `restrictive`, else for all of them. A path without a
 * value fits `ne` only. What nobody can tell, or would cost too much to find out, holds where that restricts.
 * @throws PlatformError BAD_REQUEST for a bad regular expression
 */
export function compileArgument(condition: ArgumentCondition, restrictive: boolean) {
  const path = condition.path.split('.');
  const test = valueTest(condition);
  const isOne = !path.includes('*');
  return (args: Readonly<Record<string, unknown>>, budget: Budget): boolean => {
    if (budget.isSpent) return restrictive;
    if (isOne) {
      budget.spend(10);
      const value = valueAt(args, path);
      return value === MISSING ? condition.op === 'ne' : (test(value, budget) ?? restrictive);
    }
    const values = valuesAt(args, path);
    budget.spend(10 + values.length);
    if (values.length === 0) return condition.op === 'ne';
    const fits = (value: unknown) => test(value, budget) ?? restrictive;
    return restrictive ? values.some(fits) : values.every(fits);
  };
}
