import type { Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import { newId } from '../../runtime/ids.js';
import { digestOf } from '../digest.js';
import type { AnswerOrFailure, OpenDispatch } from '../dispatch/dispatches.js';
import { outputAfter } from '../dispatch/open-dispatch.js';
import { agentMessage } from '../read/task.js';
import { inputRequestCall, type NewInputRequest } from './ask.js';

const TITLE_CHARS_MAX = 512;

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

/** A message whose agent asks. `dispatch_id`: of the dispatch that the question ends; absent for a question that was held. */
type AskingMessage = Pick<OpenDispatch, 'tenant_id' | 'message_id' | 'session_id' | 'produced'> &
  Partial<Pick<OpenDispatch, 'dispatch_id'>>;

/** An agent's question as an `ask_call` (db/functions/input/ask_input.sql). @param expiryMs how long a human may take to answer */
export function questionCall(dispatch: AskingMessage, result: AnswerOrFailure, epoch: number | null, expiryMs: number) {
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
