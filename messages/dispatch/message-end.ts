import type { Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import { messageWorkflowId } from '../../contracts/workflows.js';
import { newId } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { inputRequestCall, type NewInputRequest } from '../input/ask.js';
import { digestOf } from '../input/digest.js';
import { schemaProblem } from '../input/form.js';
import { agentMessage } from '../read/task.js';
import type { AnswerOrFailure, OpenDispatch } from './dispatches.js';
import { outputAfter } from './open-dispatch.js';

const ERROR_CHARS_MAX = 4_096;
const TITLE_CHARS_MAX = 512;

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

/** Turns a question whose form nobody can fill in into a failure. */
export function withUsableForm(result: AnswerOrFailure): AnswerOrFailure {
  const schema = result.input_request?.schema;
  const problem = schema ? schemaProblem(schema) : null;
  if (problem === null) return result;
  return {
    ...result,
    state: 'failed',
    error: { code: 'HANDLER_ERROR', message: `The agent's form schema is not valid: ${problem}` },
  };
}

/** An agent's question. @param expiryMs how long a human may take to answer */
function agentRequest(result: AnswerOrFailure, expiryMs: number): NewInputRequest {
  const { kind, title, prompt, ...asked } = result.input_request ?? {};
  const promptText = prompt ?? textOf(result.status_message?.parts ?? []);
  const firstLine = promptText.split('\n', 1)[0] || 'The agent needs an answer.';
  const content = {
    ...asked,
    kind: kind ?? (asked.schema || asked.fields ? 'form' : 'confirmation'),
    title: title ?? firstLine.slice(0, TITLE_CHARS_MAX).toWellFormed(),
    prompt: promptText,
  };
  const terms = { approvers: [], quorum: 1, timeout_seconds: expiryMs / 1_000, allow_self: true };
  return {
    ...content,
    request_id: newId('req'),
    source: 'agent',
    stage: 'agent',
    terms: { ...terms, on_reject: 'tell_agent' },
    digest: digestOf(content),
  };
}

/** A message whose agent asks. `dispatch_id`: of the dispatch that ends with it. */
export type AskingMessage = Pick<OpenDispatch, 'tenant_id' | 'message_id' | 'session_id' | 'produced'> &
  Partial<Pick<OpenDispatch, 'dispatch_id'>>;

/** An agent's question as an `ask_call` (db/functions/input/ask_input.sql). @param expiryMs how long a human may take to answer */
export function askCall(dispatch: AskingMessage, result: AnswerOrFailure, epoch: number | null, expiryMs: number) {
  const { tenant_id, message_id, dispatch_id, session_id } = dispatch;
  const request = agentRequest(result, expiryMs);
  const asked: Part[] = [{ kind: 'text', text: request.prompt || request.title }];
  return {
    ...{ tenant_id, message_id, dispatch_id, session_id, epoch },
    ...outputAfter(dispatch.produced, { ...result, artifacts: result.artifacts ?? [] }),
    turn: agentMessage(dispatch, request.request_id, result.status_message?.parts ?? asked),
    remote_task_id: result.remote_task_id,
    remote_context_id: result.remote_context_id,
    request: inputRequestCall(request),
    decisions: result.decisions,
  };
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
