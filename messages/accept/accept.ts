import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isLimited } from '../../contracts/limited-tokens.js';
import { isOwnMessage, isSentBy } from '../../contracts/permissions.js';
import { isForeignSession, ownersOf, viewOf } from '../../db/ownership.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { type MessageQuotas, UNLIMITED } from '../../usage/quotas.js';
import type { MessageCore } from '../core.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { LiveMessage } from '../dispatch/dispatches.js';
import { logEnd } from '../dispatch/message-end.js';
import { acceptedRow } from '../dispatch/open-dispatch.js';
import type { MessageRow } from '../read/rows.js';
import {
  type AcceptRow,
  type CountLimits,
  type NewMessage,
  runAcceptTransaction,
  UNCOUNTED,
} from './accept-transaction.js';
import { withDestination } from './destination.js';
import { type AcceptContext, draftOf, needsDestination } from './draft.js';
import { MessageBounds } from './message-bounds.js';
import { isContextName, openNamedSession } from './named-session.js';
import { decideOpening, refuseOpening } from './opened-session.js';
import { decidedDraft } from './policy-decision.js';
import { quotaKeys } from './quota-keys.js';
import { targetUnknownText } from './targets.js';
import { withinLimits } from './token-limits.js';
import { checkVerdict, quotaReason, type VerdictCounts } from './verdicts.js';

/** A message on the record. */
export interface Accepted {
  message_id: string;
  session_id: string;
  /** It is a repeat: nothing was written. */
  duplicate: boolean;
  /** Set when this process has sent it to an agent. */
  live: LiveMessage | null;
  /** The row of one that waits for an agent, as it was written. */
  waiting: MessageRow | null;
}

/** What accepting a message takes. */
export interface AcceptDeps {
  core: MessageCore;
  /** Writes messages and has agents get them. Messages join queues until the platform has set the process's dispatcher. */
  dispatcher: Pick<Dispatcher, 'send'>;
  bounds: MessageBounds;
  /** How often this process has given each verdict. */
  verdicts: VerdictCounts;
  quotas: MessageQuotas;
}

/** The dependencies in a process that has no agents get messages yet. */
export function acceptDeps(core: MessageCore, quotas = UNLIMITED): AcceptDeps {
  const { idempotencyHours } = core.limits;
  const send: Dispatcher['send'] = async (draft, { mayDispatch: _, ...options }) => ({
    row: await runAcceptTransaction(core.db, draft, { ...options, offer: null, idempotencyHours }),
    live: null,
  });
  return { core, dispatcher: { send }, bounds: new MessageBounds(core.limits), quotas, verdicts: {} };
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
  const written = await dispatcher.send(draft, { counting, mayDispatch });
  const { verdict, agent_type, in_flight, queued, waiting } = written.row;
  if (verdict === 'denied') logFailed(log, draft, written.row, error?.code);
  if (verdict !== 'target_unknown') return written;
  const unavailableText = await targetUnknownText(db, draft, agent_type || null);
  const { row, live } = await dispatcher.send(draft, { counting: UNCOUNTED, mayDispatch, unavailableText });
  if (row.verdict === 'unavailable') logFailed(log, draft, row, 'TARGET_UNAVAILABLE');
  return { row: { ...row, in_flight, queued, waiting }, live };
}

/** Accepts a message into an existing session, or into a new one when it names none, where the tenant's quotas have room. */
async function acceptInSession(
  deps: AcceptDeps,
  caller: Caller,
  drafted: NewMessage,
  ask: AcceptContext['ask'],
): Promise<Accepted> {
  const { tenant_id } = drafted;
  const kinds = deps.quotas.limited.get(tenant_id);
  if (kinds === undefined) return acceptNow(deps, caller, drafted, ask, null);
  const keys = await quotaKeys(deps.core.db, drafted, kinds);
  return deps.quotas.admit(tenant_id, keys, (refusal) => acceptNow(deps, caller, drafted, ask, refusal));
}

/** @param refusal of a new message; a repeat of one that was accepted before is still answered */
async function acceptNow(
  deps: AcceptDeps,
  caller: Caller,
  drafted: NewMessage,
  ask: AcceptContext['ask'],
  refusal: PlatformError | null,
): Promise<Accepted> {
  const { draft, opening } = await decidedDraft(deps.core, caller, drafted, ask);
  const admission = deps.bounds.begin(draft.tenant_id);
  let row: AcceptRow | null = null;
  try {
    const refused = refusal ?? opening?.refusal;
    const counting = refused ? { ...UNCOUNTED, refused: true } : admission.counting;
    const written = await writeMessage(deps, draft, counting);
    row = written.row;
    const { verdict, message_id, session_id } = row;
    const isByQuota = refusal !== null && verdict === 'refused';
    const counted = isByQuota ? quotaReason(refusal) : verdict;
    deps.verdicts[counted] = (deps.verdicts[counted] ?? 0) + 1;
    if (isByQuota) throw refusal;
    if (opening && verdict === 'refused') await refuseOpening(deps.core, draft, opening);
    if (verdict !== 'dispatched') await checkVerdict(deps.core.db, deps.bounds, draft, row);
    const ids = { message_id, session_id };
    if (verdict === 'rests') deps.core.advance({ tenant_id: draft.tenant_id, ...ids });
    if (verdict === 'asked') deps.core.workflowStarter.message({ tenant_id: draft.tenant_id, ...ids });
    return {
      ...ids,
      duplicate: verdict === 'repeat',
      live: written.live,
      waiting: row.state === 'submitted' ? acceptedRow(draft, row) : null,
    };
  } finally {
    admission.done(row);
  }
}

const UNNAMED =
  'contextId: a token with limits gives no new session a name. Open one with /sessions/init, or leave contextId out.';

/** Many A2A clients choose the id of a new context: its session is opened first. If the process dies between the two, the session idles out. */
async function acceptInContext(
  deps: AcceptDeps,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<Accepted> {
  try {
    return await acceptInSession(deps, caller, draftOf(caller, params, context), context.ask);
  } catch (error) {
    const { contextId } = params.message;
    const isNew = error instanceof PlatformError && error.code === 'SESSION_NOT_FOUND';
    if (!isNew || contextId === undefined || !isContextName(contextId)) throw error;
    if (isLimited(caller) && contextId !== caller.session_id) throw new PlatformError('forbidden', UNNAMED);
    const draft = draftOf(caller, params, context);
    const opening = await decideOpening(deps.core, caller, draft);
    if (opening.refusal) await refuseOpening(deps.core, draft, opening);
    // One that somebody else opens at this moment may be another's.
    if (!(await openNamedSession(deps.core.db, caller, draft, opening.events)))
      await requireOwnSession(deps.core.db, caller, contextId);
    return acceptInSession(deps, caller, draft, context.ask);
  }
}

/** An agent may use the sessions of its own type only, a limited token those within its limits. Costs a round trip for these. @throws PlatformError SESSION_NOT_FOUND */
async function requireOwnSession(db: Db, sender: Caller, contextId: string | undefined): Promise<void> {
  if (contextId === undefined || viewOf(sender) === null) return;
  if (await db.tenant(sender.tenant_id, (tx) => isForeignSession(tx, sender, contextId)))
    throw new PlatformError('SESSION_NOT_FOUND', 'There is no session of that contextId.');
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
  const accepted = await acceptInContext(deps, caller, params, limited);
  if (accepted.duplicate) await requireOwnRepeat(db, caller, accepted.message_id);
  return accepted;
}
