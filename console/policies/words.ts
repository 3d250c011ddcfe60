import type { Policy, PolicyDecision, PolicyScope } from '../../contracts/api/policies/policies.js';
import type { ArgumentCondition, Conditions } from '../../contracts/api/policies/policy-match.js';
import { durationText, numberText } from '../parts/texts.js';
import { type Condition, conditionsOf, objectOf } from './form.js';
import { type PoliciesSearch, SCOPES } from './search.js';

/** Effects as people say them. `tone`: of the badge. */
export const DECISIONS: Record<PolicyDecision, { label: string; does: string; tone: string }> = {
  allow: { label: 'Allow', does: 'Allows', tone: 'good' },
  deny: { label: 'Deny', does: 'Denies', tone: 'bad' },
  require_approval: { label: 'Ask a person', does: 'Asks a person about', tone: 'wait' },
  audit: { label: 'Record', does: 'Records, and goes on to the next rule with,', tone: 'busy' },
};

/** What each scope is about, and the actions that policies of it decide about. */
export const SCOPE_WORDS: Record<PolicyScope, { label: string; about: string; actions: [string, ...string[]] }> = {
  admission: { label: 'Admission', about: 'messages and agents that come in', actions: ['send', 'register'] },
  dispatch: { label: 'Dispatch', about: 'messages that go to an agent', actions: ['dispatch'] },
  tool: { label: 'Tool calls', about: 'tool calls', actions: ['call'] },
  plan: { label: 'Plans', about: 'plans and their steps', actions: ['create', 'approve', 'step'] },
  session: { label: 'Sessions', about: 'sessions and invitations to them', actions: ['init', 'invite'] },
};

/** Operators of conditions on arguments, between the member and the value. */
export const OPERATORS: Record<ArgumentCondition['op'], string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  gt: '>',
  gte: '≥',
  lt: '<',
  lte: '≤',
  contains: 'contains',
  matches: 'matches',
};

const LISTS: [name: Exclude<keyof Conditions, 'arguments'>, is: string][] = [
  ['tools', 'the tool is'],
  ['agent_types', 'the agent is'],
  ['instance_ids', 'the instance is'],
  ['skills', 'the skill is'],
  ['actions', 'the action is'],
  ['paths', 'a path fits'],
  ['hosts', 'a host fits'],
];
const VALUE_CHARS = 80;

function quoted(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}…` : text;
}

function argumentWords({ path, op, value }: Condition): string {
  return `${path} ${OPERATORS[op as keyof typeof OPERATORS] ?? op} ${[value].flat().map(quoted).join(', ')}`;
}

/** Each condition of a match in a few words; all of them must hold. None: everything matches. @param given may be what somebody types */
export function conditionWords(given: unknown): string[] {
  const { not, ...match } = objectOf(given);
  const lists = LISTS.flatMap(([name, is]) => {
    const globs = match[name];
    return Array.isArray(globs) ? [`${is} ${globs.join(' or ')}`] : [];
  });
  const negated = not === undefined ? [] : [`not all of this: ${conditionWords(not).join(' and ')}`];
  return [...lists, ...conditionsOf(match).map(argumentWords), ...negated];
}

/** What a policy does, in a sentence. @param policy may be what somebody types */
export function sentenceOf(policy: {
  scope: PolicyScope;
  decision: PolicyDecision;
  match?: unknown;
  evaluator?: unknown;
  max_calls?: unknown;
}): string {
  const { scope, decision, match, evaluator, max_calls } = policy;
  const { type } = objectOf(evaluator);
  const conditions = [
    ...conditionWords(match),
    ...(type === 'cel' ? ['its expression is true'] : []),
    ...(type === 'webhook' ? ['the webhook that it asks says so'] : []),
  ];
  const about = `${DECISIONS[decision]?.does ?? decision} ${SCOPE_WORDS[scope]?.about ?? scope}`;
  const bound = typeof max_calls === 'number' ? `at most ${numberText(max_calls)} of them` : undefined;
  if (conditions.length === 0) return `${about}, ${bound ?? 'all of them'}.`;
  return `${about} where ${conditions.join(' and ')}${bound ? `, ${bound}` : ''}.`;
}

/** How people decide, in a sentence each. */
export function termsOf({ approvers, evaluator }: Pick<Policy, 'approvers' | 'evaluator'>): string[] {
  const terms = evaluator.approval;
  const who =
    approvers.length > 0 ? `${approvers.join(', ')}, or anybody with the scope admin` : 'anybody with the scope admin';
  const count = terms && terms.quorum > 1 ? `${terms.quorum} different people must approve: ` : 'Who may decide: ';
  return [
    `${count}${who}.`,
    `After ${durationText((terms?.timeout_seconds ?? 86_400) * 1_000)} without a decision it is refused.`,
    ...(terms?.reminder_seconds ? [`A reminder goes out every ${durationText(terms.reminder_seconds * 1_000)}.`] : []),
    ...(terms?.escalate_to ? [`With the first reminder ${terms.escalate_to.join(', ')} may decide too.`] : []),
    ...(terms?.allow_self === false ? ['Who sent the message may not approve it.'] : []),
    ...(terms?.on_reject === 'tell_agent' ? ['A rejection goes to the agent, which goes on.'] : []),
  ];
}

type InForce = Pick<Policy, 'enabled' | 'end_at' | 'max_calls' | 'calls_allowed'>;

/** Why a policy decides nothing now, in a word or two; undefined for one that decides. */
export function whyInactive({ enabled, end_at, max_calls, calls_allowed = 0 }: InForce, nowMs: number) {
  if (!enabled) return 'inactive';
  if (end_at !== undefined && Date.parse(end_at) <= nowMs) return 'ended';
  return max_calls !== undefined && calls_allowed >= max_calls ? 'used up' : undefined;
}

/** Whether a policy decides now. */
export function isActive(policy: InForce, nowMs: number): boolean {
  return whyInactive(policy, nowMs) === undefined;
}

/** How much of its bound a policy has used up; undefined where it has none. */
export function callsWords({ max_calls, calls_allowed = 0 }: InForce): string | undefined {
  if (max_calls === undefined) return undefined;
  return `${numberText(calls_allowed)} of ${numberText(max_calls)} ${max_calls === 1 ? 'call' : 'calls'}`;
}

/** What is only recorded goes before all. */
const RANKS: Record<PolicyDecision, number> = { audit: 0, deny: 1, require_approval: 2, allow: 3 };

/** In the order in which they are looked at within their scope: by priority, the most restrictive first, the oldest first. */
export function inOrder(policies: readonly Policy[]): Policy[] {
  return policies.toSorted(
    (one, other) =>
      SCOPES.indexOf(one.scope) - SCOPES.indexOf(other.scope) ||
      one.priority - other.priority ||
      RANKS[one.decision] - RANKS[other.decision] ||
      (one.policy_id < other.policy_id ? -1 : 1),
  );
}

/** The policies that an address asks for, in their order. */
export function shownPolicies(policies: readonly Policy[], search: PoliciesSearch, nowMs: number): Policy[] {
  const { q = '', scope, show } = search;
  const wanted = q.toLowerCase();
  return inOrder(policies).filter(
    (policy) =>
      (scope === undefined || policy.scope === scope) &&
      (show === undefined || isActive(policy, nowMs) === (show === 'active')) &&
      `${policy.name} ${conditionWords(policy.match).join(' ')}`.toLowerCase().includes(wanted),
  );
}
