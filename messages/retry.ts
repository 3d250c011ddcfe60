import type { Caller } from '../contracts/api/auth.js';
import { isRepeatable, isTerminal } from '../contracts/message-states.js';
import { actsAs, isSentBy } from '../contracts/permissions.js';
import { scopeIncludes } from '../contracts/primitives.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { type AcceptDeps, acceptMessage } from './accept/accept.js';
import type { AcceptHook } from './accept/accept-transaction.js';
import { sendersOf } from './input/principals.js';
import { findOwnMessage } from './read/read.js';
import type { MessageRow } from './read/rows.js';

/** The parameters of a retry. */
export interface RetryRequest {
  message_id: string;
  /** Repeats with the same key give the same message. */
  idempotency_key?: string | undefined;
  /** True: send the message again even if an agent may have acted on it. */
  confirm?: boolean | undefined;
}

const NEWEST = `
  SELECT message_id, session_id, state, client_message_id, credential_id FROM messages WHERE tenant_id = $1 AND message_id = $2`;
const SESSION = 'SELECT status FROM sessions WHERE tenant_id = $1 AND session_id = $2';
/** Of two concurrent retries that read the same `retried_as`, only one sets it. */
const NOTE = `
  UPDATE messages SET retried_as = $3 WHERE tenant_id = $1 AND message_id = $2 AND retried_as IS NOT DISTINCT FROM $4 RETURNING 1`;
const MARK = 'UPDATE messages SET retry_of = $3, first_credential_id = $4 WHERE tenant_id = $1 AND message_id = $2';

/** @throws PlatformError NOT_FOUND; forbidden for whoever neither sent it nor has the scope `admin`; CONFLICT while it may still succeed */
function checkRetry(caller: Caller, row: MessageRow, confirm: boolean): void {
  const isSender = sendersOf(row).includes(caller.credential_id) && isSentBy(caller, row);
  if (!isSender && (actsAs(caller) !== null || !scopeIncludes(caller.scopes, 'admin')))
    throw new PlatformError('forbidden', 'Sending it again needs the scope admin, or to be its sender.');
  if (!isRepeatable(row.state))
    throw new PlatformError(
      'CONFLICT',
      `Only what has failed or was canceled is sent again; the message is ${row.state}.`,
    );
  if (row.started_at !== null && !confirm)
    throw new PlatformError(
      'CONFLICT',
      'An agent may have acted on the message: confirm: true sends it again all the same.',
    );
}

type Newest = Pick<MessageRow, 'message_id' | 'session_id' | 'state' | 'client_message_id' | 'credential_id'>;

/**
 * The newest retry of a message, if no other may be made: it is under way, or an earlier try of this same call made it. The latter may have ended, and its
 * session too; then a repeat would not be recognized, because it would have another context.
 * @param messageId the messageId that this call uses
 */
async function earlierRetry(tx: Tx, caller: Caller, retriedAs: string | null, messageId: string) {
  if (retriedAs === null) return null;
  const [newest] = await tx.query<Newest>(NEWEST, [caller.tenant_id, retriedAs]);
  const isOwn = newest?.client_message_id === messageId && newest.credential_id === caller.credential_id;
  return newest && (isOwn || !isTerminal(newest.state)) ? newest : null;
}

/** The context of the retry: the session of the message. Undefined if that has ended: a new session is opened for the same user. */
async function contextOf(tx: Tx, { tenant_id, session_id }: MessageRow): Promise<string | undefined> {
  const [session] = await tx.query<{ status: string }>(SESSION, [tenant_id, session_id]);
  return session?.status === 'active' ? session_id : undefined;
}

/** Notes on both messages that one is a retry of the other. @throws PlatformError CONFLICT if another retry was noted meanwhile */
function noteRetryOf(row: MessageRow): AcceptHook {
  const { tenant_id, message_id, retried_as } = row;
  return async (tx, made) => {
    const [first] = sendersOf(row);
    const noted = await tx.query(NOTE, [tenant_id, message_id, made.message_id, retried_as]);
    if (noted.length === 0) throw new PlatformError('CONFLICT', 'Somebody else has just sent the message again.');
    await tx.query(MARK, [tenant_id, made.message_id, message_id, first]);
  };
}

/**
 * Sends a message that has failed or was canceled again: a new message with the same content, metadata and target, which policies and quotas decide
 * about anew. While an earlier retry of it is under way, that one is given.
 * @throws PlatformError as `checkRetry` and `acceptMessage`
 */
export async function retryMessage(
  deps: AcceptDeps,
  caller: Caller,
  { message_id, idempotency_key, confirm = false }: RetryRequest,
): Promise<Pick<MessageRow, 'message_id' | 'session_id'> & { retry_of: string }> {
  const { db } = deps.core;
  const found = await findOwnMessage(db, caller, message_id);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  const { row } = found;
  checkRetry(caller, row, confirm);
  const { tenant_id, retried_as, want_agent_type, metadata, parts } = row;
  // Without a key the messageId names the retry before, so that two concurrent calls make one message.
  const messageId = `retry ${message_id} ${idempotency_key ?? `after ${retried_as ?? 'none'}`}`;
  const { earlier, contextId } = await db.tenant(tenant_id, async (tx) => {
    const earlier = await earlierRetry(tx, caller, retried_as, messageId);
    return earlier ? { earlier } : { contextId: await contextOf(tx, row) };
  });
  if (earlier) return { message_id: earlier.message_id, session_id: earlier.session_id, retry_of: message_id };
  const message = {
    kind: 'message' as const,
    role: 'user' as const,
    messageId,
    parts,
    ...(contextId && { contextId }),
  };
  const accepted = await acceptMessage(
    deps,
    caller,
    { message, metadata },
    {
      method: 'message/send',
      hook: noteRetryOf(row),
      ...(row.user_id !== null && { userId: row.user_id }),
      ...(want_agent_type !== null && { target: { agent_type: want_agent_type } }),
    },
  );
  return { message_id: accepted.message_id, session_id: accepted.session_id, retry_of: message_id };
}
