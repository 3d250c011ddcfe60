import { PlatformError } from '../runtime/errors.js';
import { newEventId } from '../runtime/ids.js';
import type { EarlyVerdict } from './decision.js';
import type { GuardedAction, GuardFinding } from './guards/guarded-content.js';
import type { ApprovalTerms, GuardDecider, PolicyRequest, Verdict } from './policy-request.js';

/** The terms of approval when a guard asks. */
export const GUARD_TERMS: ApprovalTerms = {
  approvers: [],
  quorum: 1,
  timeout_seconds: 86_400,
  allow_self: true,
  on_reject: 'fail',
};

/**
 * The terms of a policy, for a request that also asks what only the scope `admin` may decide: the policy's approvers cannot decide that, not
 * even after an escalation.
 * @param timeoutSeconds how long the other question may wait
 */
export function stricterTerms({ escalate_to: _, ...terms }: ApprovalTerms, timeoutSeconds: number): ApprovalTerms {
  return { ...terms, approvers: [], timeout_seconds: Math.min(terms.timeout_seconds, timeoutSeconds) };
}

function termsWithGuard(terms: ApprovalTerms): ApprovalTerms {
  return { ...stricterTerms(terms, GUARD_TERMS.timeout_seconds), on_reject: GUARD_TERMS.on_reject };
}

/** The verdict of policies and the findings of guards together: the most restrictive holds, so no policy permits what a guard refuses. */
export function withFindings(verdict: EarlyVerdict, findings: readonly GuardFinding[]): EarlyVerdict {
  const worst =
    findings.find(({ decision }) => decision === 'deny') ?? findings.find(({ decision }) => decision !== 'allow');
  const passed = passedGuards(findings);
  if (!worst || (verdict !== 'later' && verdict.decision === 'deny'))
    return verdict === 'later' || passed.length === 0 ? verdict : { ...verdict, passed };
  const { guard, reason, path, decision } = worst;
  const by: GuardDecider = { source: 'guard', guard, reason, ...(path && { path }) };
  const shared = { by, audits: verdict === 'later' ? [] : verdict.audits, ...(passed.length > 0 && { passed }) };
  if (decision === 'deny') return { decision, ...shared };
  if (verdict === 'later') return verdict;
  if (verdict.decision === 'require_approval')
    return { ...shared, decision, by: verdict.by, alsoBy: by, terms: termsWithGuard(verdict.terms) };
  return { decision: 'require_approval', terms: GUARD_TERMS, ...shared };
}

/** A verdict that asks a human. */
export type AskingVerdict = Extract<Verdict, { decision: 'require_approval' }>;

/** Who asks and why, as a request to a human names them. */
export function askerOf({ by, alsoBy }: AskingVerdict) {
  const guard = by.source === 'guard' ? by : alsoBy;
  return {
    source: by.source,
    prompt: [by.reason, ...(alsoBy ? [alsoBy.reason] : [])].join('\n'),
    ...(by.source === 'policy' && { policy_id: by.policy_id, policy_name: by.name }),
    ...(guard && { guard: guard.guard, ...(guard.path !== undefined && { path: guard.path }) }),
  };
}

/** The guards that found something and let it pass. */
function passedGuards(findings: readonly GuardFinding[]): string[] {
  return [...new Set(findings.filter(({ decision }) => decision === 'allow').map(({ guard }) => guard))];
}

/** An event of a decision, as SQL takes it (db/functions/messages/record_policy_outcome.sql). */
export interface DecisionEvent {
  event_id: string;
  event_type: 'policy.denied' | 'policy.audited' | 'guard.denied' | 'guard.allowed';
  severity: 'info' | 'warning';
  payload: Record<string, string | null>;
}

/** The events of a verdict, except that it asks a human: that is written with the request. None where nothing could be decided. */
export function eventsOf(
  verdict: Verdict,
  { action, tool = null }: Pick<PolicyRequest, 'action'> & { tool?: string | null },
): DecisionEvent[] {
  if (isUndecided(verdict)) return [];
  const events = verdict.audits.map(
    ({ policy_id, name, reason }): DecisionEvent => ({
      event_id: newEventId(),
      event_type: 'policy.audited',
      severity: 'info',
      payload: { policy_id, policy_name: name, action, tool, reason },
    }),
  );
  events.push(...(verdict.passed ?? []).map((guard) => passedEvent(guard, { action, tool })));
  if (verdict.decision !== 'deny') return events;
  const { by } = verdict;
  const about = { action, tool, reason: by.reason };
  const payload =
    by.source === 'policy'
      ? { policy_id: by.policy_id, policy_name: by.name, ...about }
      : { guard: by.guard, ...about };
  return [...events, { event_id: newEventId(), event_type: `${by.source}.denied`, severity: 'warning', payload }];
}

function passedEvent(guard: string, about: GuardedAction): DecisionEvent {
  return { event_id: newEventId(), event_type: 'guard.allowed', severity: 'info', payload: { guard, ...about } };
}

/**
 * The events of findings about content for which no policy is asked: `guard.allowed` once for each guard, and what denied it. That a human is
 * asked is written with the request.
 */
export function findingEvents(findings: readonly GuardFinding[], about: GuardedAction): DecisionEvent[] {
  const events = passedGuards(findings).map((guard) => passedEvent(guard, about));
  const denial = findings.find(({ decision }) => decision === 'deny');
  if (!denial) return events;
  const { guard, reason } = denial;
  const payload = { guard, ...about, reason };
  return [...events, { event_id: newEventId(), event_type: 'guard.denied', severity: 'warning', payload }];
}

/** A denial that says nothing about the action: it could not be decided about at this moment. */
export type Undecided = Extract<Verdict, { decision: 'deny' }> & { retryable: true };

/** Whether the same action may be decided about a moment later. */
export function isUndecided(verdict: Verdict): verdict is Undecided {
  return verdict.decision === 'deny' && verdict.retryable === true;
}

/** The error of an action that could not be decided about. */
export function undecidedError({ by }: Undecided): PlatformError {
  return new PlatformError('SERVICE_UNAVAILABLE', by.reason, { headers: { 'Retry-After': '1' } });
}

/** The error of what was denied, for whoever asked for it. */
export function errorOfDenial({ by }: Extract<Verdict, { decision: 'deny' }>): { code: string; message: string } {
  return by.source === 'policy'
    ? { code: 'POLICY_DENIED', message: by.reason }
    : { code: 'GUARD_DENIED', message: by.reason };
}
