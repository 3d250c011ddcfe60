import { type Approval, Evaluator, type PolicyDecision, type PolicyScope } from '../contracts/api/policies/policies.js';
import { Match } from '../contracts/api/policies/policy-match.js';
import { errorMessage, isTransient, PlatformError } from '../runtime/errors.js';
import { SEALED } from '../runtime/sealed-columns.js';
import type { Secrets } from '../runtime/secrets.js';
import { compileCel } from './evaluators/cel.js';
import type { WebhookEvaluators, WebhookTarget } from './evaluators/webhook.js';
import { type Condition, compileMatch } from './matching/conditions.js';
import type { Facts } from './matching/facts.js';
import type { AppliedPolicy, ApprovalTerms, CallBound } from './policy-request.js';
import type { PolicyRow } from './policy-store.js';

/** The purpose of the key that encrypts the secrets of evaluators. */
export const { purpose: EVALUATOR_SECRET } = SEALED.evaluatorSecrets;

/**
 * Whether a policy applies to a request. `later`: it depends on facts that are not known yet. `reason`: given by its evaluator. `failed`: why
 * its evaluator could not answer. `noRoom`: it failed because this process had no room to ask it.
 */
export type Application = { applies: boolean | 'later'; reason?: string; failed?: string; noRoom?: true };

/** Says whether a policy that matches applies. @throws Error where it cannot */
type Evaluate = (facts: Facts, dryRun: boolean) => Application | Promise<Application>;

/** A policy that is switched on, ready to decide. */
export interface CompiledPolicy {
  policy_id: string;
  name: string;
  scope: PolicyScope;
  decision: PolicyDecision;
  priority: number;
  /** In milliseconds since 1970; infinity for one without an end. */
  endAtMs: number;
  /** Null: it may allow any number of calls. */
  bound: CallBound | null;
  conditions: readonly Condition[];
  /** Null: it applies where it matches. */
  evaluate: Evaluate | null;
  isWebhook: boolean;
  onError: 'deny' | 'require_approval';
  applied: AppliedPolicy;
  terms: ApprovalTerms;
}

/** Why a policy does not decide any more; undefined for one that is in force. */
export function whyOver({ endAtMs, bound }: Pick<CompiledPolicy, 'endAtMs' | 'bound'>): string | undefined {
  if (Date.now() >= endAtMs) return `It ended at ${new Date(endAtMs).toISOString()}.`;
  if (!bound?.isSpent) return undefined;
  return bound.max_calls === 1 ? 'It has allowed its one call.' : `It has allowed its ${bound.max_calls} calls.`;
}

/** What compiling a policy takes. */
export interface CompileDeps {
  secrets: Pick<Secrets, 'decrypt'>;
  webhooks: WebhookEvaluators;
}

const APPLIES: Application = { applies: true };
const APPLIES_NOT: Application = { applies: false };
const LATER: Application = { applies: 'later' };
/** The most restrictive first; `audit`, which only records, goes before all. */
const RANKS: Record<PolicyDecision, number> = { audit: 0, deny: 1, require_approval: 2, allow: 3 };

/** The order in which policies are looked at: by priority, then the most restrictive, then the oldest. */
export function policyOrder(
  one: Pick<PolicyRow, 'priority' | 'decision' | 'policy_id'>,
  other: Pick<PolicyRow, 'priority' | 'decision' | 'policy_id'>,
): number {
  const ranked = one.priority - other.priority || RANKS[one.decision] - RANKS[other.decision];
  return ranked || (one.policy_id < other.policy_id ? -1 : 1);
}

/** `perInstance`: its answer may differ between the instances of a type. */
interface CompiledEvaluator {
  evaluate: Evaluate | null;
  perInstance: boolean;
}

function byCel(expression: string): CompiledEvaluator {
  const { test, readsInstance } = compileCel(expression);
  const evaluate = (facts: Facts): Application => {
    const applies = test(facts);
    return applies === 'later' ? LATER : applies ? APPLIES : APPLIES_NOT;
  };
  return { evaluate, perInstance: readsInstance };
}

/** A webhook gets the instance and may look at it, so its answer counts for that instance only. */
function byWebhook(webhooks: WebhookEvaluators, target: WebhookTarget): CompiledEvaluator {
  const evaluate: Evaluate = (facts, dryRun) => {
    if (facts.later.includes('webhook')) return LATER;
    const asked = webhooks.ask(target, facts, dryRun);
    return asked.then(({ applies, reason }) => ({ applies, ...(reason && { reason }) }));
  };
  return { evaluate, perInstance: true };
}

function evaluatorOf(row: PolicyRow, { secrets, webhooks }: CompileDeps): CompiledEvaluator {
  const { evaluator, policy_id, name, evaluator_secret } = row;
  if (!('type' in evaluator)) return { evaluate: null, perInstance: false };
  if (evaluator.type === 'cel') return byCel(evaluator.expression);
  const secret = evaluator_secret ? secrets.decrypt(evaluator_secret, EVALUATOR_SECRET).toString() : undefined;
  const { url, timeout_ms } = evaluator;
  return byWebhook(webhooks, { policy_id, name, url, secret, timeout_ms });
}

function termsOf(approvers: string[], { approval }: Evaluator): ApprovalTerms {
  const {
    quorum = 1,
    timeout_seconds = 86_400,
    allow_self = true,
    on_reject = 'fail',
    ...rest
  }: Partial<Approval> = approval ?? {};
  return {
    ...{ approvers, quorum, timeout_seconds, allow_self, on_reject },
    ...(rest.reminder_seconds !== undefined && { reminder_seconds: rest.reminder_seconds }),
    ...(rest.escalate_to !== undefined && { escalate_to: rest.escalate_to }),
  };
}

/**
 * Compiles a policy. Its content is checked again, because another release may have stored it: skipping a condition that is not understood
 * would make a policy that allows allow more.
 * @throws PlatformError BAD_REQUEST for an expression that is not valid, ZodError for what this release does not know
 */
export function compilePolicy(row: PolicyRow, deps: CompileDeps): CompiledPolicy {
  const { policy_id, name, scope, decision, priority } = row;
  const match = Match.parse(row.match);
  const evaluator = Evaluator.parse(row.evaluator);
  const reason = row.reason || `The policy ${name} applies.`;
  const { evaluate, perInstance } = evaluatorOf({ ...row, evaluator }, deps);
  const looksAtInstances = perInstance || Boolean(match.instance_ids ?? match.not?.instance_ids);
  return {
    ...{ policy_id, name, scope, decision, priority },
    endAtMs: row.end_at?.getTime() ?? Number.POSITIVE_INFINITY,
    bound: boundOf(row),
    conditions: compileMatch(match, decision),
    evaluate,
    isWebhook: 'type' in evaluator && evaluator.type === 'webhook',
    onError: 'type' in evaluator ? evaluator.on_error : 'deny',
    applied: {
      ...{ policy_id, name, reason, changed_at_ms: row.updated_at.getTime() },
      ...(looksAtInstances && { per_instance: true as const }),
    },
    terms: termsOf(row.approvers, evaluator),
  };
}

/** @throws PlatformError BAD_REQUEST for a bound where there is nothing to count */
export function checkBound({ scope, decision, max_calls }: Pick<PolicyRow, 'scope' | 'decision' | 'max_calls'>): void {
  if (max_calls === null || (scope === 'tool' && decision === 'allow')) return;
  const why = 'max_calls: only a policy of scope tool and decision allow counts calls.';
  throw new PlatformError('BAD_REQUEST', `${why} Leave it out, or set it to null.`);
}

function boundOf({ policy_id, max_calls, calls_allowed }: PolicyRow): CallBound | null {
  if (max_calls === null) return null;
  return { policy_id, max_calls, isSpent: (calls_allowed ?? 0) >= max_calls };
}

/** What a policy that applies decides. An `audit` policy only records, even if its evaluator failed. */
export function decisionOf(
  { decision, onError }: Pick<CompiledPolicy, 'decision' | 'onError'>,
  { failed }: Pick<Application, 'failed'>,
): PolicyDecision {
  return failed === undefined || decision === 'audit' ? decision : onError;
}

/** Whether a policy that matches applies. Never throws: an evaluator that fails says so. */
export function application(
  { evaluate }: CompiledPolicy,
  matches: true | 'later',
  facts: Facts,
  dryRun: boolean,
): Application | Promise<Application> {
  if (matches === 'later') return LATER;
  if (!evaluate) return APPLIES;
  try {
    const given = evaluate(facts, dryRun);
    return given instanceof Promise ? given.catch(failed) : given;
  } catch (error) {
    return failed(error);
  }
}

function failed(error: unknown): Application {
  return { applies: true, failed: errorMessage(error), ...(isTransient(error) && { noRoom: true as const }) };
}
