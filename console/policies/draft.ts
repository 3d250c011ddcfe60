import type { z } from 'zod';
import type { CreatePolicyRequest, Policy } from '../../contracts/api/policies/policies.js';
import type { ArgumentCondition } from '../../contracts/api/policies/policy-match.js';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { isYes } from '../inbox/words.js';

/** A policy that is not stored yet, as `create_policy` takes it. */
export type PolicyBody = z.input<typeof CreatePolicyRequest>;

/** `leftOut`: expressions for which there is no room. The policy applies whether or not they hold. */
export interface Draft {
  body: PolicyBody;
  leftOut: string[];
}

const DAYS = 30;
/** Tool calls that a draft allows without a person. */
const CALLS = 20;
const DAY_MS = 86_400_000;
const NAME_CHARS = 128;
/** As the contract bounds them. */
const [CONDITIONS_MAX, PATH_CHARS, TEXT_CHARS, EXPRESSION_CHARS, REASON_CHARS] = [20, 256, 4_096, 2_048, 1_024];
/** An expression has at most 300 parts; each of these has about ten. */
const EXPRESSIONS_MAX = 25;
const AND = ' && ';
const PRIORITY = 100;

/** What the name of a draft says of requests that are not about a tool. */
const SUBJECTS = { admission: 'messages', dispatch: 'messages', tool: 'tools', plan: 'plans', session: 'sessions' };

/** In 30 days, to the minute. */
function endOf(nowMs: number): string {
  return new Date(Math.floor((nowMs + DAYS * DAY_MS) / 60_000) * 60_000).toISOString();
}

/** What arguments are made of: a condition for each value, and as CEL how many members there are and what no condition can say. */
interface Leaves {
  conditions: ArgumentCondition[];
  expressions: string[];
}

/** A value by its members. @param path as conditions write it; null where they cannot: a name with a dot, say */
function addLeaves(found: Leaves, value: unknown, path: string | null, expression: string): void {
  if (typeof value === 'object' && value !== null) {
    found.expressions.push(`size(${expression}) == ${Object.keys(value).length}`);
    for (const [name, member] of Object.entries(value)) {
      const step = Array.isArray(value) ? `[${name}]` : `[${JSON.stringify(name)}]`;
      const isPlain = path !== null && name !== '*' && /^[^.\s]+$/.test(name);
      addLeaves(found, member, isPlain ? `${path}${path && '.'}${name}` : null, `${expression}${step}`);
    }
    return;
  }
  const isSayable =
    path !== null && path.length <= PATH_CHARS && !(typeof value === 'string' && value.length > TEXT_CHARS);
  if (isSayable && found.conditions.length < CONDITIONS_MAX)
    found.conditions.push({ path, op: 'eq', value: value as string | number | boolean | null });
  else found.expressions.push(`${expression} == ${JSON.stringify(value)}`);
}

/** Exactly these arguments: a condition for each value, and expressions by which nothing else may stand beside them. */
function exactly(given: Record<string, unknown>): Leaves {
  const found: Leaves = { conditions: [], expressions: [] };
  addLeaves(found, given, '', 'request.arguments');
  return found;
}

/** Who a message is from: its credential or person, and the end user whom it is for. */
function senderExpressions({ sent_by, user_id }: RequestRecord): string[] {
  const isCaller = sent_by.type === 'credential' || sent_by.type === 'person';
  return [
    ...(isCaller ? [`request.token.credential_id == ${JSON.stringify(sent_by.id)}`] : []),
    ...(user_id === undefined ? [] : [`request.session.user_id == ${JSON.stringify(user_id)}`]),
  ];
}

/** The expressions that fit into one; the others are left out. Where one fails, a person is asked. */
function joined(expressions: readonly string[]): { evaluator: PolicyBody['evaluator']; leftOut: string[] } {
  const kept: string[] = [];
  const leftOut: string[] = [];
  for (const each of expressions)
    ([...kept, each].join(AND).length <= EXPRESSION_CHARS && kept.length < EXPRESSIONS_MAX ? kept : leftOut).push(each);
  if (kept.length === 0) return { evaluator: {}, leftOut };
  return { evaluator: { type: 'cel', expression: kept.join(AND), on_error: 'require_approval' }, leftOut };
}

/**
 * The policy by which what a request asks would always be decided as it was, or be allowed while it is open. As narrow as can be: the same agent
 * type, the same tool with exactly these arguments or the same sender, for 30 days and 20 calls.
 * @param asking the policy that asked, which the draft goes before; null where it is deleted
 */
export function draftFromRequest(request: RequestRecord, asking: Policy | null, nowMs: number): Draft {
  const { input_request: asked, request_id, agent_type, decided } = request;
  const { tool } = asked;
  // Nobody has decided about one that expired.
  const isAllowed = decided === undefined || decided.resolution === 'expired' || isYes(decided.resolution);
  const { conditions, expressions } = tool
    ? exactly(asked.arguments ?? {})
    : { conditions: [], expressions: senderExpressions(request) };
  const { evaluator, leftOut } = joined(expressions);
  const scope = tool === undefined ? (asking?.scope ?? (request.plan_id ? 'plan' : 'admission')) : 'tool';
  const of = agent_type === undefined ? '' : ` ${tool === undefined ? 'to' : 'by'} ${agent_type}`;
  const match = {
    ...(tool && { tools: [tool] }),
    ...(agent_type && { agent_types: [agent_type] }),
    ...(conditions.length > 0 && { arguments: conditions }),
  };
  return {
    body: {
      scope,
      name: `${isAllowed ? 'Always allow' : 'Never allow'} ${tool ?? SUBJECTS[scope]}${of}`.slice(0, NAME_CHARS),
      decision: isAllowed ? 'allow' : 'deny',
      description: `Drafted from the request ${request_id}.`,
      match,
      reason: isAllowed ? '' : (decided?.comment ?? 'A person has rejected the same before.').slice(0, REASON_CHARS),
      approvers: [],
      evaluator,
      priority: (asking?.priority ?? PRIORITY) - 1,
      enabled: true,
      end_at: endOf(nowMs),
      max_calls: scope === 'tool' && isAllowed ? CALLS : null,
    },
    leftOut,
  };
}

/** A policy to begin with: about a tool, or about all messages. */
export function emptyBody(tool: string | undefined): PolicyBody {
  return {
    scope: tool === undefined ? 'admission' : 'tool',
    name: tool === undefined ? '' : `Ask about ${tool}`.slice(0, NAME_CHARS),
    decision: 'require_approval',
    description: '',
    match: tool === undefined ? {} : { tools: [tool] },
    reason: '',
    approvers: [],
    evaluator: {},
    priority: PRIORITY,
    enabled: true,
    end_at: null,
    max_calls: null,
  };
}

/** What of a stored policy a change may give. */
export function bodyOf(policy: Policy): PolicyBody {
  const { name, scope, decision, description, match, reason, approvers, evaluator, priority, enabled } = policy;
  const { end_at = null, max_calls = null } = policy;
  const rest = { priority, enabled, end_at, max_calls };
  return { scope, name, decision, description, match, reason, approvers, evaluator, ...rest };
}
