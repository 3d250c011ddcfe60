import type { Caller } from '../../contracts/api/auth.js';
import { isLimited } from '../../contracts/permissions.js';
import type { EarlyVerdict } from '../../policy/decision.js';
import type { Outcome } from '../../policy/enforce.js';
import type { LaterFact } from '../../policy/matching/facts.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import { tokenFacts } from '../../policy/token-facts.js';
import { errorOfDenial, eventsOf, isUndecided, undecidedError } from '../../policy/verdict.js';
import type { MessageCore } from '../core.js';
import { inputRequestCall, type NewInputRequest } from '../input/ask.js';
import { approvalRequest, draftMessage, type PolicyMessage, policyRequest } from '../policy-requests.js';
import type { AcceptDecision, NewMessage } from './accept-transaction.js';
import { decideOpening } from './opened-session.js';

/** A message that is to be accepted. */
export interface Submission {
  caller: Caller;
  draft: NewMessage;
  /** A request to a human that the message waits for in any case. Policies that cannot decide now decide after its approval. */
  ask?: NewInputRequest | undefined;
}

function requireDecided(verdict: EarlyVerdict): EarlyVerdict {
  if (verdict !== 'later' && isUndecided(verdict)) throw undecidedError(verdict);
  return verdict;
}

async function dispatchDecision(
  policies: PolicyEngine,
  draft: NewMessage,
  message: PolicyMessage,
  later: readonly LaterFact[],
): Promise<AcceptDecision> {
  const request = policyRequest('dispatch', message);
  const named = message.agent.instance_id === undefined ? (['instance_id'] as const) : [];
  const verdict = requireDecided(await policies.decideEarly(draft.tenant_id, request, [...later, ...named]));
  if (verdict === 'later' || verdict.decision === 'require_approval') return { dispatch_undecided: true };
  const events = eventsOf(verdict, request);
  if (verdict.decision === 'deny') return { error: errorOfDenial(verdict), events };
  return events.length > 0 ? { dispatch_events: events } : {};
}

async function decisionOf(
  policies: PolicyEngine,
  draft: NewMessage,
  ask: NewInputRequest | undefined,
  message: PolicyMessage,
  later: LaterFact[],
): Promise<AcceptDecision> {
  const request = policyRequest('admission', message);
  const verdict = requireDecided(await policies.decideEarly(draft.tenant_id, request, later));
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

/**
 * Has policies decide about a new message, the session that it opens, and its dispatch, as far as they can before its agent is chosen. Decisions that need an
 * evaluator outside are left until after the accept transaction.
 * @returns the draft with the policies' decision and the token that they see; and their decision about the session that it opens
 * @throws PlatformError SERVICE_UNAVAILABLE while the tenant's policies cannot be read
 */
export async function decidedDraft(
  core: Pick<MessageCore, 'db' | 'policies'>,
  { caller, draft, ask }: Submission,
): Promise<{ draft: NewMessage; opening?: Outcome | undefined }> {
  const { policies } = core;
  // Policies that are made later have to see that the token was limited, because its credential may do more.
  if (ask === undefined && policies.isUnconcerned(draft.tenant_id))
    return { draft: isLimited(caller) ? { ...draft, token: tokenFacts(caller) } : draft };
  const opening = draft.requested_context === '' ? await decideOpening(core, caller, draft) : undefined;
  const { message, later } = draftMessage(draft, caller);
  const { events = [], ...rest } = await decisionOf(policies, draft, ask, message, later);
  const all = [...(opening?.events ?? []), ...events];
  const decision: AcceptDecision = { ...rest, ...(all.length > 0 && { events: all }) };
  const { token } = message;
  return { draft: { ...draft, token, ...(Object.keys(decision).length > 0 && { decision }) }, opening };
}
