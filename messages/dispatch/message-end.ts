import { type Artifact, textOf } from '../../contracts/a2a/parts.js';
import type { Usage } from '../../contracts/api/messages.js';
import { newId } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { schemaProblem } from '../input/form.js';
import { agentMessage } from '../read/task.js';
import type { AnswerOrFailure, OpenDispatch, Produced } from './dispatches.js';

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

/** A sum that stays an exact number, whatever agents report. */
function addTokens(before: number, more: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, before + more);
}

/** The usage of all dispatches of a message; the model is that of the newest. */
function addUsage(before: Usage | null, more: Usage | undefined): Usage | null {
  if (!more) return before;
  const cost = Math.min(Number.MAX_VALUE, (before?.cost_usd ?? 0) + (more.cost_usd ?? 0));
  const model = more.model ?? before?.model;
  return {
    input_tokens: addTokens(before?.input_tokens ?? 0, more.input_tokens),
    output_tokens: addTokens(before?.output_tokens ?? 0, more.output_tokens),
    ...(model !== undefined && { model }),
    ...((before?.cost_usd !== undefined || more.cost_usd !== undefined) && { cost_usd: cost }),
  };
}

/** The artifacts of earlier dispatches and of this one, which replaces those of the same id. */
function mergeArtifacts(before: Artifact[], more: Artifact[]): Artifact[] {
  const replaced = new Set(more.map((artifact) => artifact.artifactId));
  return [...before.filter((artifact) => !replaced.has(artifact.artifactId)), ...more];
}

/** The output of a message after a result: that of earlier dispatches and its own. Null when the result has no output. */
export function outputAfter(before: Produced, { artifacts, usage, status_message }: AnswerOrFailure) {
  if (!artifacts) return null;
  return {
    artifacts: mergeArtifacts(before.artifacts, artifacts),
    usage: addUsage(before.usage, usage),
    status_message: status_message ?? null,
  };
}

/** The error of a failed result. */
export function errorOf({ error, status_message }: AnswerOrFailure): StoredError {
  const text = textOf(status_message?.parts ?? []);
  return boundedError(error ?? { code: 'HANDLER_ERROR', message: text || 'The agent reported a failure.' });
}

/** Turns a question whose form nobody can fill in into a failure. */
export function withUsableForm(result: AnswerOrFailure): AnswerOrFailure {
  const schema = result.state === 'input-required' ? result.input_request?.schema : undefined;
  const problem = schema ? schemaProblem(schema) : null;
  if (problem === null) return result;
  return {
    ...result,
    state: 'failed',
    error: { code: 'HANDLER_ERROR', message: `The agent's form schema is not valid: ${problem}` },
  };
}

/** An agent's question as an `ask_call` (db/functions/ask_input.sql). @param expiryMs how long a human may take to answer */
export function askCall(
  dispatch: Pick<OpenDispatch, 'tenant_id' | 'message_id' | 'dispatch_id' | 'session_id' | 'produced'>,
  result: AnswerOrFailure,
  epoch: number | null,
  expiryMs: number,
) {
  const { tenant_id, message_id, dispatch_id, session_id } = dispatch;
  const { kind, title, prompt, ...request } = result.input_request ?? {};
  const parts = result.status_message?.parts;
  const promptText = prompt ?? textOf(parts ?? []);
  const titleText =
    title ?? (promptText.split('\n', 1)[0] || 'The agent needs an answer.').slice(0, TITLE_CHARS_MAX).toWellFormed();
  const request_id = newId('req');
  return {
    ...{ tenant_id, message_id, dispatch_id, session_id, epoch, request_id },
    ...outputAfter(dispatch.produced, { ...result, artifacts: result.artifacts ?? [] }),
    ...{ ...request, kind: kind ?? (request.schema || request.fields ? 'form' : 'confirmation') },
    ...{ title: titleText, prompt: promptText, expiry_ms: expiryMs },
    turn: agentMessage(dispatch, request_id, parts ?? [{ kind: 'text', text: promptText || titleText }]),
    remote_task_id: result.remote_task_id,
    remote_context_id: result.remote_context_id,
    event_ids: [newId('evt'), newId('evt')],
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
  instance_id: string | null;
  state: string;
  /** `error.code` of a failed message. */
  code?: string | undefined;
}

/** Logs a failed or canceled message, in one line. To be called after the commit by the code that wrote the end. */
export function logEnd(log: Pick<Logger, 'info' | 'warn'>, end: LoggedEnd): void {
  const { tenant_id, message_id, session_id, dispatch_id, agent_type, instance_id, state, code } = end;
  const ids = { tenant_id, message_id, session_id, dispatch_id, agent_type, instance_id };
  if (state === 'failed') log.warn({ ...ids, code }, 'message failed');
  if (state === 'canceled') log.info(ids, 'message canceled');
}
