import { TOO_MANY_HOPS } from '../../contracts/a2a/a2a.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AcceptRow, NewMessage } from './accept-transaction.js';
import type { MessageBounds } from './message-bounds.js';
import { targetRequiredText } from './targets.js';

/** How often each verdict was given. For a message that a quota refuses, the reason is counted in place of the verdict. */
export type VerdictCounts = Partial<Record<AcceptRow['verdict'] | 'quota_exceeded' | 'usage_unknown', number>>;

/** The reason that is counted for a message which a quota refuses. */
export const quotaReason = ({ code }: PlatformError) =>
  code === 'QUOTA_EXCEEDED' ? 'quota_exceeded' : 'usage_unknown';

export const sessionNotFound = () => new PlatformError('SESSION_NOT_FOUND', 'There is no session of that contextId.');

type VerdictBounds = Pick<MessageBounds, 'queuedMax' | 'queuedRetrySeconds' | 'waitingMax' | 'waitingRetrySeconds'>;

/**
 * Returns if the verdict says that the message is on the record, and throws the error of any other verdict.
 * @param bounds the limits and times that the error texts name
 * @throws PlatformError IDEMPOTENCY_MISMATCH, SESSION_CLOSED, TARGET_REQUIRED or INVALID_PARAMS for a verdict that refuses the message; RATE_LIMITED with
 * Retry-After where it may be sent again
 */
export async function checkVerdict(
  db: Db,
  bounds: VerdictBounds,
  draft: NewMessage,
  { verdict }: AcceptRow,
): Promise<void> {
  switch (verdict) {
    case 'mismatch':
      throw new PlatformError('IDEMPOTENCY_MISMATCH', 'This messageId was already sent with other content.');
    case 'session_closed':
      throw new PlatformError('SESSION_CLOSED', 'The session has ended.');
    case 'target_required':
      throw new PlatformError('TARGET_REQUIRED', await targetRequiredText(db, draft.tenant_id));
    case 'queued_full':
      throw new PlatformError(
        'RATE_LIMITED',
        `The tenant has ${bounds.queuedMax} messages that wait for agents, which is its bound. Try again.`,
        { headers: { 'Retry-After': String(bounds.queuedRetrySeconds) } },
      );
    case 'waiting_full':
      throw new PlatformError(
        'RATE_LIMITED',
        `The tenant has ${bounds.waitingMax} messages that wait for input, which is its bound. Answer or cancel some (/messages/pending).`,
        { headers: { 'Retry-After': String(bounds.waitingRetrySeconds) } },
      );
    case 'other_user':
      throw new PlatformError(
        'INVALID_PARAMS',
        'metadata.user_id: the session, or the work of the agent, is of another user.',
      );
    case 'too_many_hops':
      throw new PlatformError('INVALID_PARAMS', `metadata.hops: ${TOO_MANY_HOPS}`);
    case 'refused': // `decideAndWrite` throws the refusal
    case 'no_session': // `acceptInContext` opens the session, or throws
    case 'target_unknown': // `writeMessage` writes the message as failed
    case 'locked': // `runAcceptTransaction` repeats the call
      throw new Error(`the verdict ${verdict} was not followed`);
    case 'unavailable':
    case 'denied':
    case 'asked':
    case 'repeat':
    case 'rests':
    case 'queued':
    case 'dispatched':
      return;
    default:
      throw new Error(`the verdict ${verdict satisfies never} is not known`);
  }
}
