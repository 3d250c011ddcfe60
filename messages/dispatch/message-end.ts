import { textOf } from '../../contracts/a2a/text.js';
import { messageWorkflowId } from '../../contracts/workflows.js';
import type { Logger } from '../../runtime/logger.js';
import type { AnswerOrFailure } from './dispatches.js';

const ERROR_CHARS_MAX = 4_096;

/** The stored reason of a failed message. */
export interface StoredError {
  code: string;
  message: string;
}

/** An error as it is stored: its text has at most 4,096 characters. */
export function boundedError(error: StoredError): StoredError {
  return { code: error.code, message: error.message.slice(0, ERROR_CHARS_MAX).toWellFormed() };
}

/** The error of a failed result. */
export function errorOf({ error, status_message }: AnswerOrFailure): StoredError {
  const text = textOf(status_message?.parts ?? []);
  return boundedError(error ?? { code: 'HANDLER_ERROR', message: text || 'The agent reported a failure.' });
}

/** The end of a message, for the log. */
export interface LoggedEnd {
  tenant_id: string;
  message_id: string;
  session_id: string;
  /** Its last dispatch; null if it had none. */
  dispatch_id: string | null;
  agent_type: string | null;
  /** The requested type, for a message that no agent had. */
  want_agent_type: string | null;
  instance_id: string | null;
  state: string;
  /** `error.code` of a failed message. */
  code?: string | undefined;
}

/** Logs a failed or canceled message, in one line. To be called after the commit by the code that wrote the end. */
export function logEnd(log: Pick<Logger, 'info' | 'warn'>, end: LoggedEnd): void {
  const { tenant_id, message_id, session_id, dispatch_id, instance_id, state, code } = end;
  const agent_type = end.agent_type ?? end.want_agent_type;
  const workflow_id = messageWorkflowId({ tenant_id, message_id }); // there is one if the message lasted, or a person was asked
  const ids = { tenant_id, message_id, session_id, dispatch_id, workflow_id, agent_type, instance_id };
  if (state === 'failed') log.warn({ ...ids, code }, 'message failed');
  if (state === 'canceled') log.info(ids, 'message canceled');
}
