import type { Caller } from '../../contracts/api/auth.js';
import type { EarlyVerdict } from '../../policy/decision.js';
import { messageContent } from '../../policy/guards/content.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import { errorOfDenial, eventsOf } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import { inputRequestCall, type NewInputRequest } from '../input/ask.js';
import { approvalRequest, draftMessage, type PolicyMessage, policyRequest } from '../policy-requests.js';
import type { AcceptDecision, NewMessage } from './accept-transaction.js';

function sureOf(verdict: EarlyVerdict): Exclude<EarlyVerdict, { retryable: true }> {
  if (verdict !== 'later' && verdict.decision === 'deny' && verdict.retryable)
    throw new PlatformError('SERVICE_UNAVAILABLE', verdict.by.reason);
  return verdict;
}

async function dispatchDecision(
  policies: PolicyEngine,
  draft: NewMessage,
  message: PolicyMessage,
  later: Parameters<PolicyEngine['decideEarly']>[2],
): Promise<AcceptDecision> {
  const request = policyRequest('dispatch', message);
  const named = message.agent.instance_id === undefined ? (['instance_id'] as const) : [];
  const verdict = sureOf(await policies.decideEarly(draft.tenant_id, request, [...later, ...named]));
  if (verdict === 'later' || verdict.decision === 'require_approval') return { noOffer: true };
  const events = eventsOf(verdict, request);
  if (verdict.decision === 'deny') return { error: errorOfDenial(verdict), events };
  return events.length > 0 ? { dispatch_events: events } : {};
}

/**
 * Decides about a message that enters, and about its dispatch as far as that is possible before its agent is chosen. Asks no evaluator
 * outside: what needs one is left to the workflow path.
 * @param ask a request that the message waits for in any case; policies decide after its approval what they cannot decide before
 * @returns null: they have nothing to say
 * @throws PlatformError SERVICE_UNAVAILABLE while the tenant's policies cannot be read
 */
export async function decideOnAccept(
  policies: PolicyEngine,
  caller: Caller,
  draft: NewMessage,
  ask: NewInputRequest | undefined,
): Promise<AcceptDecision | null> {
  const decision = await decisionOf(policies, caller, draft, ask);
  return Object.keys(decision).length > 0 ? decision : null;
}

async function decisionOf(
  policies: PolicyEngine,
  caller: Caller,
  draft: NewMessage,
  ask: NewInputRequest | undefined,
): Promise<AcceptDecision> {
  const { message, later } = draftMessage(draft, caller);
  const request = policyRequest('admission', message);
  const content = messageContent(draft.parts, draft.metadata);
  const verdict = sureOf(await policies.decideEarly(draft.tenant_id, request, later, content));
  const asked = ask && { input_request: inputRequestCall(ask) };
  if (verdict === 'later') return { undecided: true, ...asked };
  const events = eventsOf(verdict, request);
  if (verdict.decision === 'deny') return { error: errorOfDenial(verdict), events };
  if (verdict.decision === 'require_approval') {
    if (asked) return { undecided: true, ...asked };
    return { input_request: inputRequestCall(approvalRequest(verdict, request, 'admission')), events };
  }
  const recorded = events.length > 0 && { events };
  if (asked) return { ...asked, ...recorded };
  const dispatch = await dispatchDecision(policies, draft, message, later);
  return { ...recorded, ...dispatch, ...(dispatch.events && { events: [...events, ...dispatch.events] }) };
}
