import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isLimited, isOwnMessage, isSentBy } from '../../contracts/permissions.js';
import { isForeignSession, ownersOf, viewOf } from '../../db/ownership.js';
import type { Db } from '../../db/pool.js';
import type { EarlyVerdict } from '../../policy/decision.js';
import type { Outcome } from '../../policy/enforce.js';
import type { LaterFact } from '../../policy/matching/facts.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import { tokenFacts } from '../../policy/token-facts.js';
import { errorOfDenial, eventsOf, isUndecided, undecidedError } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import { type MessageQuotas, UNLIMITED } from '../../usage/quotas.js';
import type { MessageCore } from '../core.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { LiveMessage } from '../dispatch/dispatches.js';
import { logEnd } from '../dispatch/message-end.js';
import { acceptedRow } from '../dispatch/open-dispatch.js';
import { inputRequestCall, type NewInputRequest } from '../input/ask.js';
import { approvalRequest, draftMessage, type PolicyMessage, policyRequest } from '../policy-requests.js';
import type { MessageRow } from '../read/rows.js';
import {
  type AcceptDecision,
  type AcceptRow,
  type CountLimits,
  type NewMessage,
  runAcceptTransaction,
  UNCOUNTED,
} from './accept-transaction.js';
import { withDestination } from './destination.js';
import { type AcceptContext, draftOf, needsDestination, withinLimits } from './draft.js';
import { MessageBounds } from './message-bounds.js';
import { isContextName, openNamedSession } from './named-session.js';
import { decideOpening, recordRefusal } from './opened-session.js';
import { quotaKeys } from './quota-keys.js';
import { targetUnknownText } from './targets.js';
import { checkVerdict, quotaReason, sessionNotFound, type VerdictCounts } from './verdicts.js';

/** A message on the record. */
export interface Accepted {
  message_id: string;
  session_id: string;
  /** It is a repeat: nothing was written. */
  duplicate: boolean;
  /** Set when this process has sent it to an agent. */
  live: LiveMessage | null;
  /** The row as it was written, of a message in the state `submitted`; else null. */
  writtenRow: MessageRow | null;
}

/** The dependencies of `acceptMessage`. */
export interface AcceptDeps {
  core: MessageCore;
  /** Writes messages and sends them to agents. Until the platform has set the process's dispatcher, messages only join queues. */
  dispatcher: Pick<Dispatcher, 'acceptAndSend'>;
  bounds: MessageBounds;
  /** How often this process has given each verdict. */
  verdicts: VerdictCounts;
  quotas: MessageQuotas;
}

/** The dependencies without the process's dispatcher: messages only join queues. */
export function acceptDeps(core: MessageCore, quotas = UNLIMITED): AcceptDeps {
  const { idempotencyHours } = core.limits;
  const acceptAndSend: Dispatcher['acceptAndSend'] = async (draft, { mayDispatch: _, ...options }) => ({
    row: await runAcceptTransaction(core.db, draft, { ...options, offer: null, idempotencyHours }),
    live: null,
  });
  return { core, dispatcher: { acceptAndSend }, bounds: new MessageBounds(core.limits), quotas, verdicts: {} };
}

/** A message that is to be accepted. */
interface Submission {
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
async function decidedDraft(
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

/** Logs a message that failed as it was accepted. */
function logFailed(log: MessageCore['log'], draft: NewMessage, row: AcceptRow, code: string | undefined): void {
  const { tenant_id, want_agent_type, want_instance_id: instance_id } = draft;
  const { message_id, session_id } = row;
  const ids = { tenant_id, message_id, session_id, dispatch_id: null, agent_type: null, want_agent_type, instance_id };
  logEnd(log, { ...ids, state: 'failed', code });
}

/** Runs the accept transaction. A message whose target is not registered is written as failed, with the reason. */
async function writeMessage(
  { core, dispatcher }: AcceptDeps,
  draft: NewMessage,
  counting: CountLimits,
): Promise<{ row: AcceptRow; live: LiveMessage | null }> {
  const { db, log } = core;
  const { error, undecided, dispatch_undecided, input_request } = draft.decision ?? {};
  const mayDispatch = !error && !undecided && !dispatch_undecided && !input_request;
  const written = await dispatcher.acceptAndSend(draft, { counting, mayDispatch });
  const { verdict, agent_type, in_flight, queued, waiting } = written.row;
  if (verdict === 'denied') logFailed(log, draft, written.row, error?.code);
  if (verdict !== 'target_unknown') return written;
  const unavailableText = await targetUnknownText(db, draft, agent_type);
  const { row, live } = await dispatcher.acceptAndSend(draft, { counting: UNCOUNTED, mayDispatch, unavailableText });
  if (row.verdict === 'unavailable') logFailed(log, draft, row, 'TARGET_UNAVAILABLE');
  return { row: { ...row, in_flight, queued, waiting }, live };
}

/** Counts a message's verdict, or the reason for which a quota refuses it. */
function count(verdicts: VerdictCounts, reason: keyof VerdictCounts): void {
  verdicts[reason] = (verdicts[reason] ?? 0) + 1;
}

/**
 * Has policies decide about a message, and writes it.
 * @param byQuota the error of a quota that refuses a new message; a repeat of a message that is on the record is still answered
 * @returns null if there is no session of its contextId
 */
async function decideAndWrite(
  deps: AcceptDeps,
  submission: Submission,
  byQuota: PlatformError | null,
): Promise<Accepted | null> {
  const { core, verdicts } = deps;
  const { draft, opening } = await decidedDraft(core, submission);
  const refusal = byQuota ?? opening?.refusal;
  const check = deps.bounds.begin(draft.tenant_id);
  let row: AcceptRow | null = null;
  try {
    const counting = refusal ? { ...UNCOUNTED, refused: true } : check.counting;
    const written = await writeMessage(deps, draft, counting);
    row = written.row;
    const { verdict, message_id, session_id } = row;
    if (refusal && verdict === 'refused') {
      count(verdicts, byQuota ? quotaReason(byQuota) : verdict);
      if (!byQuota && opening) await recordRefusal(core, draft, opening);
      throw refusal;
    }
    count(verdicts, verdict);
    if (verdict === 'no_session') return null;
    if (verdict !== 'dispatched') await checkVerdict(core.db, deps.bounds, draft, row);
    const ids = { message_id, session_id };
    if (verdict === 'rests') core.advance({ tenant_id: draft.tenant_id, ...ids });
    if (verdict === 'asked') core.workflowStarter.message({ tenant_id: draft.tenant_id, ...ids });
    return {
      ...ids,
      duplicate: verdict === 'repeat',
      live: written.live,
      writtenRow: row.state === 'submitted' ? acceptedRow(draft, row) : null,
    };
  } finally {
    check.done(row);
  }
}

/** Accepts a message into an existing session, or into a new one when it names none, where the tenant's quotas have room. @returns null as `decideAndWrite` does */
async function acceptWithinQuotas(deps: AcceptDeps, submission: Submission): Promise<Accepted | null> {
  const { draft } = submission;
  const kinds = deps.quotas.limited.get(draft.tenant_id);
  if (kinds === undefined) return decideAndWrite(deps, submission, null);
  const keys = await quotaKeys(deps.core.db, draft, kinds);
  return deps.quotas.admit(draft.tenant_id, keys, (refusal) => decideAndWrite(deps, submission, refusal));
}

const UNNAMED =
  'contextId: a token with limits gives no new session a name. Open one with /sessions/init, or leave contextId out.';

/** Opens the session that a message names. @throws PlatformError SESSION_NOT_FOUND for a name that no caller may give; forbidden for a limited token */
async function openContext(core: MessageCore, { caller, draft }: Submission): Promise<void> {
  const { requested_context: contextId } = draft;
  if (!isContextName(contextId)) throw sessionNotFound();
  if (isLimited(caller) && contextId !== caller.session_id) throw new PlatformError('forbidden', UNNAMED);
  const opening = await decideOpening(core, caller, draft);
  if (opening.refusal) {
    await recordRefusal(core, draft, opening);
    throw opening.refusal;
  }
  // Somebody else has opened a session of that name: the caller may use it only if it is theirs.
  if (!(await openNamedSession(core.db, caller, draft, opening.events)))
    await requireOwnSession(core.db, caller, contextId);
}

/** Many A2A clients choose the id of a new context: then its session is opened, and the message accepted again. After a crash in between it idles out. */
async function acceptInContext(deps: AcceptDeps, submission: Submission): Promise<Accepted> {
  const accepted = await acceptWithinQuotas(deps, submission);
  if (accepted) return accepted;
  await openContext(deps.core, submission);
  const inOpened = await acceptWithinQuotas(deps, submission);
  if (!inOpened) throw sessionNotFound();
  return inOpened;
}

/**
 * An agent may use the sessions of its own type only, a limited token those within its limits. Costs these senders a round trip. @throws PlatformError
 * SESSION_NOT_FOUND
 */
async function requireOwnSession(db: Db, sender: Caller, contextId: string | undefined): Promise<void> {
  if (contextId === undefined || viewOf(sender) === null) return;
  if (await db.tenant(sender.tenant_id, (tx) => isForeignSession(tx, sender, contextId))) throw sessionNotFound();
}

/** Agents of several types, and limited tokens, may share a credential, and with it their messageIds. @throws PlatformError IDEMPOTENCY_MISMATCH */
async function requireOwnRepeat(db: Db, sender: Caller, messageId: string): Promise<void> {
  if (viewOf(sender) === null) return;
  const owners = await db.tenant(sender.tenant_id, (tx) => ownersOf(tx, sender.tenant_id, messageId));
  if (!owners || !isSentBy(sender, owners) || !isOwnMessage(sender, owners))
    throw new PlatformError('IDEMPOTENCY_MISMATCH', 'This messageId was already sent by another.');
}

/**
 * Accepts a message: one transaction writes its row, its session if it opens one, and the events. An agent with
 * room gets it at once; else it waits in a queue. A repeat of the same messageId from the same credential in the same context gives the same
 * message.
 * @throws PlatformError INVALID_PARAMS, CONTENT_TYPE_NOT_SUPPORTED, IDEMPOTENCY_MISMATCH, SESSION_NOT_FOUND, TARGET_REQUIRED,
 * SESSION_CLOSED; QUOTA_EXCEEDED; forbidden beyond the limits of a token; SERVICE_UNAVAILABLE while the tenant's policies cannot be read; RATE_LIMITED at the tenant's limit of messages that are queued or
 * of those that wait for input
 */
export async function acceptMessage(
  deps: AcceptDeps,
  caller: Caller,
  given: MessageSendParams,
  context: AcceptContext,
): Promise<Accepted> {
  const { db } = deps.core;
  const resolved = needsDestination(given) ? await withDestination(db, caller, given, context) : context;
  const { params, context: limited } = await withinLimits(db, caller, given, resolved);
  await requireOwnSession(db, caller, params.message.contextId);
  const submission = { caller, draft: draftOf(caller, params, limited), ask: limited.ask };
  const accepted = await acceptInContext(deps, submission);
  if (accepted.duplicate) await requireOwnRepeat(db, caller, accepted.message_id);
  return accepted;
}
