import type { ArgumentCondition } from '../../contracts/api/policies/policy-match.js';
import {
  type ArgumentFact,
  comparedText,
  isEqual,
  lookCost,
  MISSING,
  matchedText,
  numberOf,
  type Scalar,
  valueAt,
  valuesAt,
} from './argument-values.js';
import { type Budget, SEARCHED_CHARS } from './budget.js';
import { type PolicyKey, policyKey } from './policy-key.js';
import { compileRegex, type Regex } from './regex.js';

/** Units of `Budget` to write one character of an object as a text. */
const WRITTEN_CHAR_COST = 1;

/** Whether one value fits; undefined: nobody can tell, or it would cost too much to find out. */
type ValueTest = (value: unknown, budget: Budget) => boolean | undefined;

/** An operator with what it compares with. `keys`: what a value must be to fit. */
interface Comparison {
  test: ValueTest;
  keys: readonly PolicyKey[];
}

function negated(truth: boolean | undefined): boolean | undefined {
  return truth === undefined ? undefined : !truth;
}

function isOneOf(value: unknown, expected: readonly Scalar[], budget: Budget): boolean | undefined {
  if (typeof value === 'object' && value !== null) return undefined;
  if (!budget.take(expected.length * lookCost(value))) return undefined;
  return expected.some((one) => isEqual(value, one));
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
  return budget.take(value.length / SEARCHED_CHARS) ? value.includes(expected) : undefined;
}

/** Looks for the parts of every match first: most texts lack one, which is cheap to find out. */
function matches(value: unknown, { test, charCost, parts }: Regex, budget: Budget): boolean | undefined {
  const text = matchedText(value);
  // An object's text is written for each condition anew.
  if (typeof value === 'object') budget.spend(text.length * WRITTEN_CHAR_COST);
  for (const some of parts) {
    if (!budget.take((some.length * text.length) / SEARCHED_CHARS)) return undefined;
    if (!some.some((part) => text.includes(part))) return false;
  }
  return budget.take(text.length * charCost) ? test(text) : undefined;
}

function comparison(condition: ArgumentCondition): Comparison {
  const { path, op, value: expected } = condition;
  const key = (fact: ArgumentFact, needs: Partial<PolicyKey>) => policyKey(fact, { path, ...needs });
  switch (op) {
    case 'eq':
      return {
        test: (value) => isEqual(value, expected),
        keys: [key('equal_arguments', { literals: [comparedText(expected)] })],
      };
    case 'ne':
      return { test: (value) => negated(isEqual(value, expected)), keys: [] };
    case 'in':
      return {
        test: (value, budget) => isOneOf(value, expected, budget),
        keys: [key('equal_arguments', { literals: [...new Set(expected.map(comparedText))] })],
      };
    case 'contains':
      return {
        test: (value, budget) => contains(value, expected, budget),
        keys: typeof expected === 'string' ? [key('containing_arguments', { parts: [expected] })] : [],
      };
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte': {
      const bound = op === 'gt' || op === 'gte' ? 'least' : 'most';
      return {
        test: (value) => compares(op, value, expected),
        keys: typeof expected === 'number' ? [key('amounts', { [bound]: expected })] : [],
      };
    }
    case 'matches': {
      const regex = compileRegex(expected);
      return {
        test: (value, budget) => matches(value, regex, budget),
        keys: regex.parts.map((parts) => key('matched_arguments', { parts })),
      };
    }
    default:
      return condition satisfies never;
  }
}

/**
 * Whether a condition holds for arguments: for one of the values at its path where `restrictive`, else for all of them. A path without a value
 * fits `ne` only. A test without an answer, or one that would cost too much, counts as `restrictive`.
 * @returns `keys`: what one of the values must be
 * @throws PlatformError BAD_REQUEST for a bad regular expression
 */
export function compileArgument(condition: ArgumentCondition, restrictive: boolean) {
  const path = condition.path.split('.');
  const { test, keys } = comparison(condition);
  const isOne = !path.includes('*');
  const holds = (args: Readonly<Record<string, unknown>>, budget: Budget): boolean => {
    if (budget.isSpent) return restrictive;
    if (isOne) {
      const value = valueAt(args, path);
      budget.spend(10 + lookCost(value));
      return value === MISSING ? condition.op === 'ne' : (test(value, budget) ?? restrictive);
    }
    const values = valuesAt(args, path, budget);
    if (!values) return restrictive;
    if (values.length === 0) return condition.op === 'ne';
    const fits = (value: unknown) => test(value, budget) ?? restrictive;
    return restrictive ? values.some(fits) : values.every(fits);
  };
  return { holds, keys };
}
