import { CelScalar, celEnv, isCelError, mapType, parse, plan } from '@bufbuild/cel';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import type { Facts, LaterFact } from '../matching/facts.js';
import { Regexes } from '../matching/regex.js';
import { costFunction, type Expr, type Extent, extentOf, patternOf } from './cel-cost.js';

const NODES_MAX = 300;
const DEPTH_MAX = 32;
/** One comprehension in another. */
const NESTED_MAX = 2;
/** The largest request that is evaluated: characters, members and items together. */
const REQUEST_SIZE_MAX = 64 * 1024;

/** A compiled expression. */
export interface CelExpression {
  /** What it says of a request; `later`: it reads an agent that is not known yet. @throws Error where it fails */
  test(facts: Facts): boolean | 'later';
  /** Whether it reads which instance gets the request. */
  readsInstance: boolean;
}

const NO_TOKEN = {
  sub: '',
  credential_id: '',
  scopes: [],
  agent_type: '',
  user_id: '',
  session_id: '',
  agent_types: [],
};

/** What expressions see. What a request does not have is an empty text or object, so that reading it is no error. */
export function celRequest({ tenantId, request }: Facts) {
  const { agent = {}, session = {}, token = {} } = request;
  const agentFacts = { agent_type: '', instance_id: '', skill_id: '', ...agent };
  return {
    scope: request.scope,
    action: request.action,
    tool: request.tool ?? '',
    arguments: request.arguments ?? {},
    agent: agentFacts,
    session: { session_id: '', user_id: '', ...session },
    tenant: tenantId,
    token: { ...NO_TOKEN, ...token },
  };
}

/** The members of `request`, with their members: `any` where callers name them, none where it is a text. */
const MEMBERS: Record<string, readonly string[] | 'any'> = {
  ...{ scope: [], action: [], tool: [], tenant: [], arguments: 'any' },
  agent: ['agent_type', 'instance_id', 'skill_id', 'skill_ids'],
  session: ['session_id', 'user_id'],
  token: Object.keys(NO_TOKEN),
} satisfies Record<keyof ReturnType<typeof celRequest>, readonly string[] | 'any'>;

function bad(problem: string): PlatformError {
  return new PlatformError('BAD_REQUEST', `evaluator.expression: ${problem}`);
}

interface Shape {
  nodes: number;
  readonly regexes: Regexes;
}

/** The members of `request` that later facts belong to. */
const MEMBER_OF: Partial<Record<LaterFact, string>> = {
  agent_type: 'agent',
  instance_id: 'agent',
  skill_id: 'agent',
  user_id: 'session',
};

function childrenOf({ exprKind }: Expr): (Expr | undefined)[] {
  switch (exprKind.case) {
    case 'selectExpr':
      return [exprKind.value.operand];
    case 'callExpr':
      return [exprKind.value.target, ...exprKind.value.args];
    case 'listExpr':
      return exprKind.value.elements;
    case 'structExpr':
      return exprKind.value.entries.flatMap(({ keyKind, value }) => [
        keyKind.case === 'mapKey' ? keyKind.value : undefined,
        value,
      ]);
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result } = exprKind.value;
      return [iterRange, accuInit, loopCondition, loopStep, result];
    }
    default:
      return [];
  }
}

/** The members by which a node is reached from `request`: `['agent', 'agent_type']`; undefined for any other node. */
function pathOf({ exprKind }: Expr): string[] | undefined {
  if (exprKind.case === 'identExpr') return exprKind.value.name === 'request' ? [] : undefined;
  if (exprKind.case !== 'selectExpr' || !exprKind.value.operand) return undefined;
  const above = pathOf(exprKind.value.operand);
  return above && [...above, exprKind.value.field];
}

/** What an expression reads of `request`: `agent.agent_type`, `agent` for all of it, '' for the whole request. */
function readsOf(expr: Expr, reads = new Set<string>()): ReadonlySet<string> {
  const path = pathOf(expr);
  if (path) reads.add(path.slice(0, 2).join('.'));
  else for (const child of childrenOf(expr)) if (child) readsOf(child, reads);
  return reads;
}

/** @throws PlatformError BAD_REQUEST for a member that no request has: the policy would fail, and so deny, for each one */
function requireMembers(reads: ReadonlySet<string>): void {
  for (const [name = '', member = ''] of [...reads].map((read) => read.split('.'))) {
    const members = Object.hasOwn(MEMBERS, name) ? MEMBERS[name] : undefined;
    if (name !== '' && !members)
      throw bad(`there is no request.${name}. A request has ${Object.keys(MEMBERS).join(', ')}.`);
    if (member === '' || !members || members === 'any' || members.includes(member)) continue;
    const has = members.length > 0 ? `It has ${members.join(', ')}` : 'It is a text';
    throw bad(`there is no request.${name}.${member}. ${has}.`);
  }
}

/** Visits an expression and refuses what is beyond the bounds. @throws PlatformError BAD_REQUEST */
function inspect(expr: Expr, variables: ReadonlySet<string>, shape: Shape, depth = 1, loops = 0): void {
  shape.nodes += 1;
  if (shape.nodes > NODES_MAX) throw bad(`has more than ${NODES_MAX} parts.`);
  if (depth > DEPTH_MAX) throw bad(`is nested deeper than ${DEPTH_MAX}.`);
  const { exprKind } = expr;
  if (exprKind.case === 'identExpr' && !variables.has(exprKind.value.name))
    throw bad(`there is no ${exprKind.value.name}. Everything is a member of request.`);
  if (exprKind.case === 'callExpr' && exprKind.value.function === 'matches')
    patternOf(
      [exprKind.value.target, ...exprKind.value.args].filter((operand) => operand !== undefined),
      shape.regexes,
    );
  const isLoop = exprKind.case === 'comprehensionExpr';
  if (isLoop && loops + 1 > NESTED_MAX) throw bad('has more than one comprehension inside another.');
  const inner = isLoop
    ? new Set([...variables, exprKind.value.iterVar, exprKind.value.iterVar2, exprKind.value.accuVar])
    : variables;
  for (const child of childrenOf(expr)) {
    const isRange = isLoop && child === exprKind.value.iterRange;
    if (child) inspect(child, isRange ? variables : inner, shape, depth + 1, isLoop && !isRange ? loops + 1 : loops);
  }
}

function isRead(reads: ReadonlySet<string>, fact: LaterFact): boolean {
  const member = MEMBER_OF[fact];
  return member !== undefined && (reads.has(`${member}.${fact}`) || reads.has(member) || reads.has(''));
}

function parsed(expression: string): Expr {
  try {
    const { expr } = parse(expression);
    if (expr) return expr;
  } catch (error) {
    throw bad(`cannot be read: ${errorMessage(error)}`);
  }
  throw bad('is empty.');
}

interface Measured {
  request: ReturnType<typeof celRequest>;
  extent: Extent;
}
const measured = new WeakMap<Facts, Measured>();

/** What the expressions of one decision see, made and measured once. */
function measure(facts: Facts): Measured {
  const known = measured.get(facts);
  if (known) return known;
  const request = celRequest(facts);
  const made = { request, extent: extentOf(request, REQUEST_SIZE_MAX) };
  measured.set(facts, made);
  return made;
}

/**
 * Compiles a CEL expression over `request`. It is evaluated only if the most that it can cost for the request, by its structure and the
 * request's size, is within the budget of the decision.
 * @throws PlatformError BAD_REQUEST for an expression that cannot be read, reads anything but the members of `request`, or is beyond the bounds
 */
export function compileCel(expression: string): CelExpression {
  const expr = parsed(expression);
  const regexes = new Regexes();
  inspect(expr, new Set(['request']), { nodes: 0, regexes });
  const reads = readsOf(expr);
  requireMembers(reads);
  const variables = { request: mapType(CelScalar.STRING, CelScalar.DYN) };
  const costOf = costFunction(expr, regexes);
  const evaluate = plan(celEnv({ variables, re2: regexes }), expr);
  const test = (facts: Facts) => {
    if (facts.later.some((fact) => isRead(reads, fact))) return 'later';
    const { request, extent } = measure(facts);
    if (extent.size > REQUEST_SIZE_MAX) throw new Error('the request is too large for an expression');
    if (!facts.budget.take(costOf(extent))) throw new Error('the expression would cost too much for this request');
    const value = evaluate({ request } as Parameters<typeof evaluate>[0]);
    if (isCelError(value)) throw new Error(value.message);
    if (typeof value !== 'boolean') throw new Error('the expression gave neither true nor false');
    return value;
  };
  return { test, readsInstance: isRead(reads, 'instance_id') };
}
