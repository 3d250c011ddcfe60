import type { MessageSendParams } from '../contracts/a2a.js';
import type { Caller } from '../contracts/auth.js';
import { PlatformError } from '../runtime/errors.js';
import type { MessageCore } from './core.js';
import { type AcceptContext, draftOf } from './draft.js';
import type { InFlightBound } from './in-flight-bound.js';
import { RpcError } from './rpc-error.js';
import type { LiveMessage, ShortWay } from './short-way.js';
import { type AcceptRow, acceptInOne } from './transactions.js';

/** A message that is on the record. `duplicate`: it was already, and nothing was written. */
export interface Accepted {
  message_id: string;
  session_id: string;
  duplicate: boolean;
  /** It goes the short way, in this process. */
  live: LiveMessage | null;
}

/** What messages are put on the record with. */
export interface Acceptance {
  core: MessageCore;
  /** Null where there is none in this process. */
  shortWay: ShortWay | null;
  /** Of the tenants' messages in flight, as this process knows them. */
  bound: InFlightBound;
}

/** @throws what the caller is told instead of a task */
function refuse(verdict: AcceptRow['verdict'], most: number): void {
  switch (verdict) {
    case 'mismatch':
      throw new RpcError(
        'INVALID_PARAMS',
        'This messageId was already sent with other content.',
        'IDEMPOTENCY_MISMATCH',
      );
    case 'no_session':
      throw new RpcError('INVALID_PARAMS', 'There is no session of that contextId.', 'NOT_FOUND');
    case 'session_closed':
      throw new RpcError('UNSUPPORTED_OPERATION', 'The session has ended.', 'SESSION_CLOSED');
    case 'full':
      throw new PlatformError(
        'RATE_LIMITED',
        `The tenant has ${most} messages in flight, which is its bound. Try again.`,
        { headers: { 'Retry-After': '1' } },
      );
    case 'repeat':
    case 'accepted':
    case 'dispatched':
      return;
    default:
      verdict satisfies never;
  }
}

/**
 * Puts a message on the record: row, session where none is named, and events in one transaction. Then it goes the short way where it
 * can, else its workflow is woken. The workflow of a session that was opened here starts later, by the sweeper: it has nothing to do
 * before the session idles. A repeat of the same messageId from the same credential in the same context gives the same message.
 * @throws RpcError INVALID_PARAMS (IDEMPOTENCY_MISMATCH, NOT_FOUND), UNSUPPORTED_OPERATION (SESSION_CLOSED)
 * @throws PlatformError RATE_LIMITED beyond the tenant's bound of messages in flight
 */
export async function acceptMessage(
  { core, shortWay, bound }: Acceptance,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<Accepted> {
  const draft = draftOf(caller, params, context);
  const counting = bound.begin(draft.tenant_id);
  let inFlight: number | null = null;
  try {
    const sent = await shortWay?.send(draft, counting.most);
    const row = sent?.row ?? (await acceptInOne(core.db, draft, counting.most, null));
    inFlight = row.in_flight;
    refuse(row.verdict, bound.most);
    const ids = { message_id: row.its_message, session_id: row.its_session };
    if (row.verdict === 'accepted') core.waker.message({ tenant_id: draft.tenant_id, ...ids }, { fresh: true });
    return { ...ids, duplicate: row.verdict === 'repeat', live: sent?.live ?? null };
  } finally {
    counting.done(inFlight);
  }
}
