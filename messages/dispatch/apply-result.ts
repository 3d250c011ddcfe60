import type { Usage } from '../../contracts/messages.js';
import { type Artifact, textOf } from '../../contracts/parts.js';
import { newId } from '../../runtime/ids.js';
import { schemaProblem } from '../input/form.js';
import { agentMessage } from '../read/task.js';
import type { AnswerOrFailure, OpenDispatch, Produced } from './dispatches.js';

const MAX_ERROR_CHARS = 4_096;
const TITLE_CHARS = 512;

/** Why a message failed, as it is stored. */
export interface StoredError {
  code: string;
  message: string;
}

/** An error as it is stored: its text at most 4,096 characters. */
export function boundedError(error: StoredError): StoredError {
  return { code: error.code, message: error.message.slice(0, MAX_ERROR_CHARS).toWellFormed() };
}

/** Usage of all dispatches of a message together; the newest names the model. */
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

/** A sum that is still an exact number, however much agents claim to have used. */
function addTokens(before: number, more: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, before + more);
}

/** Artifacts of earlier dispatches and of this one; a repeated id replaces. */
function mergeArtifacts(before: Artifact[], more: Artifact[]): Artifact[] {
  const replaced = new Set(more.map((artifact) => artifact.artifactId));
  return [...before.filter((artifact) => !replaced.has(artifact.artifactId)), ...more];
}

/** What a message shows after a result: the output of earlier dispatches and its own. Null when the agent brought no output. */
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

/** A question whose form nobody could fill in is a failure. */
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

/** An agent's question as `ask_input` takes it. @param expiryMs how long a human may take to answer */
export function askCall(
  dispatch: Pick<OpenDispatch, 'tenant_id' | 'message_id' | 'dispatch_id' | 'session_id' | 'produced'>,
  result: AnswerOrFailure,
  epoch: number | null,
  expiryMs: number,
) {
  const { tenant_id, message_id, dispatch_id, session_id } = dispatch;
  const { kind, title, prompt, ...asked } = result.input_request ?? {};
  const parts = result.status_message?.parts;
  const promptText = prompt ?? textOf(parts ?? []);
  const titleText =
    title ?? (promptText.split('\n', 1)[0] || 'The agent needs an answer.').slice(0, TITLE_CHARS).toWellFormed();
  const request_id = newId('req');
  return {
    ...{ tenant_id, message_id, dispatch_id, session_id, epoch, request_id },
    ...outputAfter(dispatch.produced, { ...result, artifacts: result.artifacts ?? [] }),
    ...{ ...asked, kind: kind ?? (asked.schema || asked.fields ? 'form' : 'confirmation') },
    ...{ title: titleText, prompt: promptText, expiry_ms: expiryMs },
    turn: agentMessage(dispatch, request_id, parts ?? [{ kind: 'text', text: promptText || titleText }]),
    remote_task_id: result.remote_task_id,
    remote_context_id: result.remote_context_id,
    event_ids: [newId('evt'), newId('evt')],
  };
}
