import { randomUUID } from 'node:crypto';
import type { A2aMessage, Task } from '../../contracts/a2a.js';
import type { DispatchPayload, DispatchResultPayload, ErrorPayload } from '../../contracts/frames.js';
import type { Usage } from '../../contracts/messages.js';
import type { Artifact } from '../../contracts/parts.js';
import type { Completed, Failed, InputRequired } from './agent-task.js';
import { ARTIFACTS, PARTS, QUESTION, USAGE } from './answer-fields.js';
import { ANSWER_BYTES_MAX, errorText, isErrorCode, sendable, shown, UnsendableError } from './sendable.js';

/** The frame that ends a dispatch. */
export type Outcome =
  | { type: 'dispatch_result'; payload: DispatchResultPayload }
  | { type: 'error'; payload: ErrorPayload };

const ANSWER_FORMS =
  "return text, an array of parts, { state: 'completed' | 'input-required' | 'failed', … }, nothing after streaming, or a stream of text";

/**
 * Turns what a handler returned into the frame that ends its dispatch.
 * @param streamed the answer where the handler returned none; it is in the artifact that the chunks were in, so that a
 *   watcher sees one output, not two
 * @param onUnfitUsage learns why a usage is left out: it is no reason to lose an answer
 * @throws UnsendableError where the mesh would not take it
 */
export function outcomeOf(
  result: unknown,
  streamed: Artifact,
  dispatch: DispatchPayload,
  onUnfitUsage: (problem: string) => void,
): Outcome {
  const outcome = build(normalize(result), streamed, dispatch, onUnfitUsage);
  const bytes = Buffer.byteLength(JSON.stringify(outcome.payload));
  if (bytes <= ANSWER_BYTES_MAX) return outcome;
  throw new UnsendableError(`the answer has ${bytes} bytes, at most ${ANSWER_BYTES_MAX} can be sent; shorten it`);
}

/** The frame for what a handler threw. */
export function outcomeOfError(error: unknown): Outcome {
  return { type: 'error', payload: { code: 'HANDLER_ERROR', message: errorText(error), retryable: false } };
}

function normalize(result: unknown): Completed | InputRequired | Failed {
  if (result === undefined || result === null || result === '') return { state: 'completed' };
  if (typeof result === 'string') return { state: 'completed', parts: [{ kind: 'text', text: result }] };
  if (Array.isArray(result)) return { state: 'completed', parts: result };
  if (typeof result === 'object' && 'state' in result) return result as Completed | InputRequired | Failed;
  throw new UnsendableError(`the answer is ${shown(result)}; ${ANSWER_FORMS}`);
}

function build(
  result: Completed | InputRequired | Failed,
  streamed: Artifact,
  dispatch: DispatchPayload,
  onUnfitUsage: (problem: string) => void,
): Outcome {
  switch (result.state) {
    case 'completed': {
      const usage = usageOf(result.usage, onUnfitUsage);
      return completed(task(dispatch, 'completed', artifactsOf(result, streamed)), usage);
    }
    case 'input-required': {
      const question = sendable(result.question, QUESTION);
      const asking = task(dispatch, 'input-required', nonEmpty(streamed), question.prompt);
      return asked({ ...result, question }, asking, usageOf(result.usage, onUnfitUsage));
    }
    case 'failed':
      return failed(result);
    default: {
      const { state } = result satisfies never as { state: unknown };
      throw new UnsendableError(`the answer has the state ${shown(state)}; ${ANSWER_FORMS}`);
    }
  }
}

/** What is given beside the stream is the whole answer; where nothing is, the stream is. */
function artifactsOf({ artifacts, parts }: Completed, streamed: Artifact): Artifact[] {
  const given = sendable(artifacts ?? [], ARTIFACTS);
  if (given.length > 0) return given;
  const whole = sendable(parts ?? [], PARTS);
  return nonEmpty(whole.length > 0 ? { ...streamed, parts: whole } : streamed);
}

function usageOf(usage: Usage | undefined, onUnfit: (problem: string) => void): Usage | undefined {
  if (usage === undefined || usage === null) return undefined;
  try {
    return sendable(usage, USAGE);
  } catch (error) {
    onUnfit(errorText(error));
    return undefined;
  }
}

function completed(result: Task, usage: Usage | undefined): Outcome {
  return { type: 'dispatch_result', payload: { result, status: { state: 'completed' }, ...(usage && { usage }) } };
}

function asked({ question }: InputRequired, result: Task, usage: Usage | undefined): Outcome {
  const status = { state: 'input-required' as const, input_request: question };
  return { type: 'dispatch_result', payload: { result, status, ...(usage && { usage }) } };
}

function failed({ code = 'HANDLER_ERROR', message, retryable = false }: Failed): Outcome {
  if (!isErrorCode(code)) {
    const problem = `code: ${shown(code)} is none; a code has 1 to 64 characters`;
    throw new UnsendableError(`${problem}. The failure itself: ${errorText(message)}`);
  }
  return { type: 'error', payload: { code, message: errorText(message), retryable: retryable === true } };
}

function nonEmpty(artifact: Artifact): Artifact[] {
  return artifact.parts.length === 0 ? [] : [artifact];
}

function task(
  dispatch: DispatchPayload,
  state: 'completed' | 'input-required',
  artifacts: Artifact[],
  text?: string,
): Task {
  const { message_id: id, session_id: contextId } = dispatch.session_context;
  const message: A2aMessage | undefined =
    text === undefined
      ? undefined
      : {
          kind: 'message',
          messageId: randomUUID(),
          role: 'agent',
          parts: [{ kind: 'text', text }],
          taskId: id,
          contextId,
        };
  const status = { state, timestamp: new Date().toISOString(), ...(message && { message }) };
  return { kind: 'task', id, contextId, status, ...(artifacts.length > 0 && { artifacts }) };
}
