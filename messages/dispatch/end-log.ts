import type { Logger } from '../../runtime/logger.js';

/** A message that has ended otherwise than `completed`, and what it ended with. */
export interface LoggedEnd {
  tenant_id: string;
  message_id: string;
  session_id: string;
  /** Its last dispatch; null where it had none. */
  dispatch_id: string | null;
  agent_type: string | null;
  instance_id: string | null;
  state: string;
  /** Why it failed, as in `error.code` of the message. */
  code?: string | undefined;
}

/**
 * The one line of the log about a message that failed or was canceled. Whoever writes the end calls it after the commit, so that there is
 * one line for each message on either path.
 */
export function logEnd(log: Pick<Logger, 'info' | 'warn'>, end: LoggedEnd): void {
  const { tenant_id, message_id, session_id, dispatch_id, agent_type, instance_id, state, code } = end;
  const ids = { tenant_id, message_id, session_id, dispatch_id, agent_type, instance_id };
  if (state === 'failed') log.warn({ ...ids, code }, 'message failed');
  if (state === 'canceled') log.info(ids, 'message canceled');
}
