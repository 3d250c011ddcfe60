import type { MessageSendParams } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import { logEnd } from '../dispatch/end-log.js';
import type { FastPath, LiveMessage } from '../dispatch/fast-path.js';
import { type AcceptRow, acceptInOne, type CountLimits, type NewMessage, UNCOUNTED } from './accept-transaction.js';
import { type AcceptContext, draftOf } from './draft.js';
import type { InFlightLimit } from './in-flight-limit.js';
import { targetRequiredText, targetUnknownText } from './targets.js';
import type { WaitingBound } from './waiting-limit.js';

/** A message that is on the record. `duplicate`: it was already, and nothing was written. */
export interface Accepted {
  message_id: string;
  session_id: string;
  duplicate: boolean;
  /** It failed as it was accepted: what it is for is not registered. */
  ended: boolean;
  /** It takes the fast path, in this process. */
  live: LiveMessage | null;
}

/** What messages are put on the record with. */
export interface Acceptance {
  core: MessageCore;
  /** Null where there is none in this process. */
  fastPath: FastPath | null;
  /** Of the tenants' messages in flight, as this process knows them. */
  inFlight: InFlightLimit;
  /** Of those that wait for input. */
  waiting: WaitingBound;
}

/** @throws what the caller is told instead of a task */
async function refuse({ core, inFlight, waiting }: Acceptance, draft: NewMessage, verdict: AcceptRow['verdict']) {
  switch (verdict) {
    case 'mismatch':
      throw new PlatformError('IDEMPOTENCY_MISMATCH', 'This messageId was already sent with other content.');
    case 'no_session':
      throw new PlatformError('SESSION_NOT_FOUND', 'There is no session of that contextId.');
    case 'session_closed':
      throw new PlatformError('SESSION_CLOSED', 'The session has ended.');
    case 'target_required':
      throw new PlatformError('TARGET_REQUIRED', await targetRequiredText(core.db, draft.tenant_id));
    case 'full':
      throw new PlatformError(
        'RATE_LIMITED',
        `The tenant has ${inFlight.limit} messages in flight, which is its bound. Try again.`,
        { headers: { 'Retry-After': '1' } },
      );
    case 'waiting_full':
      throw new PlatformError(
        'RATE_LIMITED',
        `The tenant has ${waiting.limit} messages that wait for input, which is its bound. Answer or cancel some (/messages/pending).`,
        { headers: { 'Retry-After': String(waiting.retryAfterSeconds) } },
      );
    case 'target_unknown': // The message is put on the record as failed; see `placeOnRecord`.
    case 'unavailable':
    case 'repeat':
    case 'accepted':
    case 'dispatched':
      return;
    default:
      verdict satisfies never;
  }
}

/** A message for nobody that is registered has ended with T1. */
function logUnavailable(
  { log }: MessageCore,
  draft: NewMessage,
  ids: { message_id: string; session_id: string },
): void {
  const { tenant_id, want_agent_type: agent_type, want_instance_id: instance_id } = draft;
  const code = 'TARGET_UNAVAILABLE';
  logEnd(log, { ...ids, tenant_id, dispatch_id: null, agent_type, instance_id, state: 'failed', code });
}

/** T1, with the dispatch where this process may send it. A message for nobody that is registered is written as failed, with the reason. */
async function placeOnRecord(
  { core, fastPath }: Acceptance,
  draft: NewMessage,
  limits: CountLimits,
): Promise<{ row: AcceptRow; live: LiveMessage | null }> {
  const { idempotencyHours } = core.limits;
  const sent = (await fastPath?.send(draft, limits)) ?? {
    row: await acceptInOne(core.db, draft, { limits, offer: null, idempotencyHours }),
    live: null,
  };
  if (sent.row.verdict !== 'target_unknown') return sent;
  const unavailableText = await targetUnknownText(core.db, draft, sent.row.agent_type || null);
  const { in_flight, waiting } = sent.row;
  const row = await acceptInOne(core.db, draft, { limits: UNCOUNTED, offer: null, idempotencyHours, unavailableText });
  return { row: { ...row, in_flight, waiting }, live: null };
}

/**
 * Puts a message on the record: row, session where none is named, and events in one transaction. Then it takes the fast path where it
 * can, else its workflow is woken. The workflow of a session that was opened here starts later, by the sweeper: it has nothing to do
 * before the session idles. A repeat of the same messageId from the same credential in the same context gives the same message.
 * @throws PlatformError IDEMPOTENCY_MISMATCH, SESSION_NOT_FOUND, TARGET_REQUIRED, SESSION_CLOSED; RATE_LIMITED beyond the tenant's bounds of messages in flight and of those that wait for input
 */
export async function acceptMessage(
  acceptance: Acceptance,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<Accepted> {
  const { core, inFlight, waiting } = acceptance;
  const draft = draftOf(caller, params, context);
  const counting = inFlight.begin(draft.tenant_id);
  const countingWaiting = waiting.begin(draft.tenant_id);
  let row: AcceptRow | null = null;
  try {
    const limits = {
      in_flight_limit: counting.limit,
      waiting_limit: countingWaiting.limit,
      waiting_full: countingWaiting.full,
    };
    const placed = await placeOnRecord(acceptance, draft, limits);
    row = placed.row;
    await refuse(acceptance, draft, row.verdict);
    const ids = { message_id: row.message_id, session_id: row.session_id };
    if (row.verdict === 'accepted')
      core.workflowStarter.message({ tenant_id: draft.tenant_id, ...ids }, { fresh: true });
    const { verdict } = row;
    if (verdict === 'unavailable') logUnavailable(core, draft, ids);
    return { ...ids, duplicate: verdict === 'repeat', ended: verdict === 'unavailable', live: placed.live };
  } finally {
    counting.done(row?.in_flight ?? null);
    countingWaiting.done(row?.waiting ?? null);
  }
}
