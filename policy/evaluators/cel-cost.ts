import type { parse } from '@bufbuild/cel';
import { PlatformError } from '../../runtime/errors.js';
import type { Regex, Regexes } from '../matching/regex.js';

/** A node of a parsed expression. */
export type Expr = NonNullable<ReturnType<typeof parse>['expr']>;

/** The evaluation of one node, in the units of `Budget`. */
const NODE_UNITS = 25;

/** An upper bound of a value: its characters, members and items together, and the items of its largest list or map. */
export interface Extent {
  size: number;
  count: number;
}

interface Estimate extends Extent {
  cost: number;
}

/** The extents of variables, and the regular expressions of the whole expression. */
interface Scope {
  extents: ReadonlyMap<string, Extent>;
  regexes: Regexes;
}

function withExtents(scope: Scope, extents: Record<string, Extent>): Scope {
  return { ...scope, extents: new Map([...scope.extents, ...Object.entries(extents)]) };
}

const ONE: Extent = { size: 1, count: 1 };
/** Operators that look at no more than one member of their operands. */
const CONSTANT_TIME = new Set(['_&&_', '_||_', '!_', '-_', '_?_:_', '_[_]', '@not_strictly_false', '_?._', '_[?_]']);
/** Operators whose result is a part of an operand. */
const GIVES_PART = new Set(['_?_:_', '_[_]', '_?._', '_[?_]']);
/** Operators and functions whose result is no larger than a number or a truth value. */
const GIVES_SCALAR =
  /^(_[&|=!<>]+_|!_|-_|@in|@not_strictly_false|size|contains|startsWith|endsWith|matches|has|get.*|int|uint|double|bool|type)$/;

function largest(extents: readonly Extent[]): Extent {
  return {
    size: Math.max(1, ...extents.map(({ size }) => size)),
    count: Math.max(1, ...extents.map(({ count }) => count)),
  };
}

function total(estimates: readonly Estimate[]): Estimate {
  const sum = (of: (estimate: Estimate) => number) => estimates.reduce((all, estimate) => all + of(estimate), 0);
  return { cost: sum(({ cost }) => cost), size: sum(({ size }) => size), count: largest(estimates).count };
}

function estimateCall(name: string, operands: Expr[], scope: Scope): Estimate {
  const each = operands.map((operand) => estimate(operand, scope));
  const all = total(each);
  const work = name === 'matches' ? (each[0]?.size ?? 1) * patternOf(operands, scope.regexes).charCost : all.size;
  const cost = all.cost + NODE_UNITS + (CONSTANT_TIME.has(name) ? 0 : work);
  if (GIVES_SCALAR.test(name)) return { ...ONE, cost };
  if (GIVES_PART.has(name)) return { ...largest(each), cost };
  // A sum of lists has the items of both.
  const count = each.reduce((items, operand) => items + operand.count, 0);
  return { size: all.size + 1, count, cost };
}

type Comprehension = Extract<Expr['exprKind'], { case: 'comprehensionExpr' }>['value'];

/**
 * A macro adds to its result in each turn, so one turn on an empty result shows how much; the result of the last turn is the largest that a
 * turn meets. What a turn does with its item is linear in the item's size, so that all turns cost as one does with an item of the mean size,
 * times their number.
 */
function estimateComprehension(loop: Comprehension, scope: Scope): Estimate {
  const range = loop.iterRange ? estimate(loop.iterRange, scope) : { ...ONE, cost: 0 };
  const start = loop.accuInit ? estimate(loop.accuInit, scope) : { ...ONE, cost: 0 };
  const turns = Math.max(1, range.count);
  const item = { size: Math.max(1, range.size / turns), count: range.count };
  const turn = (accumulated: Extent): Estimate => {
    const second = loop.iterVar2 === '' ? {} : { [loop.iterVar2]: item };
    const inner = withExtents(scope, { [loop.iterVar]: item, [loop.accuVar]: accumulated, ...second });
    const parts = [loop.loopCondition, loop.loopStep].map((part) =>
      part ? estimate(part, inner) : { ...ONE, cost: 0 },
    );
    return { ...(parts[1] ?? ONE), cost: NODE_UNITS + parts.reduce((cost, part) => cost + part.cost, 0) };
  };
  const grown = turn(start);
  const end = { size: start.size + turns * grown.size, count: start.count + turns + grown.count };
  const result = loop.result ? estimate(loop.result, withExtents(scope, { [loop.accuVar]: end })) : { ...end, cost: 0 };
  return { ...result, cost: range.cost + start.cost + result.cost + turns * turn(end).cost };
}

/** The most that an expression can cost, and how large its value can be. */
function estimate(expr: Expr, scope: Scope): Estimate {
  const { exprKind } = expr;
  switch (exprKind.case) {
    case 'constExpr': {
      const { constantKind } = exprKind.value;
      const length =
        constantKind.case === 'stringValue' || constantKind.case === 'bytesValue' ? constantKind.value.length : 0;
      return { size: length + 1, count: 1, cost: NODE_UNITS };
    }
    case 'identExpr':
      return { ...(scope.extents.get(exprKind.value.name) ?? ONE), cost: NODE_UNITS };
    case 'selectExpr': {
      const of = exprKind.value.operand ? estimate(exprKind.value.operand, scope) : { ...ONE, cost: 0 };
      return exprKind.value.testOnly ? { ...ONE, cost: of.cost + NODE_UNITS } : { ...of, cost: of.cost + NODE_UNITS };
    }
    case 'callExpr': {
      const { function: name, target, args } = exprKind.value;
      return estimateCall(name, target ? [target, ...args] : args, scope);
    }
    case 'listExpr': {
      const all = total(exprKind.value.elements.map((element) => estimate(element, scope)));
      const { length } = exprKind.value.elements;
      return { cost: all.cost + NODE_UNITS, size: all.size + 1, count: Math.max(all.count, length) };
    }
    case 'structExpr': {
      const entries = exprKind.value.entries.flatMap(({ keyKind, value }) => [
        ...(keyKind.case === 'mapKey' ? [estimate(keyKind.value, scope)] : []),
        ...(value ? [estimate(value, scope)] : []),
      ]);
      const all = total(entries);
      return { cost: all.cost + NODE_UNITS, size: all.size + 1, count: Math.max(all.count, entries.length) };
    }
    case 'comprehensionExpr':
      return estimateComprehension(exprKind.value, scope);
    default:
      throw new PlatformError('BAD_REQUEST', 'evaluator.expression: has a part without a meaning.');
  }
}

/** The regular expression of a call of `matches`. @throws PlatformError BAD_REQUEST unless it is a literal, and as `Regexes.compile` */
export function patternOf(operands: readonly Expr[], regexes: Regexes): Regex {
  const kind = operands[1]?.exprKind;
  const source =
    kind?.case === 'constExpr' && kind.value.constantKind.case === 'stringValue' && kind.value.constantKind.value;
  if (typeof source !== 'string')
    throw new PlatformError('BAD_REQUEST', 'evaluator.expression: matches needs its regular expression as a literal.');
  return regexes.compile(source);
}

function powerOfTwo(number: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, number)));
}

/** The most that an expression can cost for a `request` of an extent, in the units of `Budget`; infinite for hostile ones. */
export function costFunction(expr: Expr, regexes: Regexes): (request: Extent) => number {
  const known = new Map<number, Map<number, number>>();
  return (request) => {
    const size = powerOfTwo(request.size);
    const count = powerOfTwo(request.count);
    const ofSize = known.get(size) ?? new Map<number, number>();
    known.set(size, ofSize);
    const cost =
      ofSize.get(count) ?? estimate(expr, { extents: new Map([['request', { size, count }]]), regexes }).cost;
    ofSize.set(count, cost);
    return cost;
  };
}

/** The extent of a JSON value; counts no further than `maxSize`. */
export function extentOf(value: unknown, maxSize: number): Extent {
  const found = { size: 0, count: 1 };
  measure(value, found, maxSize);
  return found;
}

function measure(value: unknown, found: Extent, maxSize: number): void {
  found.size += typeof value === 'string' ? value.length + 1 : 1;
  if (typeof value !== 'object' || value === null || found.size > maxSize) return;
  const keys = Array.isArray(value) ? [] : Object.keys(value);
  const members = Array.isArray(value) ? value : Object.values(value);
  found.count = Math.max(found.count, members.length);
  for (const key of keys) found.size += key.length;
  for (const member of members) measure(member, found, maxSize);
}
