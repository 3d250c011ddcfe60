import { randomUUID } from 'node:crypto';
import type { A2aMessage, Task } from '../../contracts/a2a.js';
import type { DispatchPayload, DispatchResultPayload, ErrorPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Usage } from '../../contracts/messages.js';
import type { Artifact } from '../../contracts/parts.js';
import type { Completed, Failed, InputRequired, TaskResult } from './agent-task.js';

/** The frame that ends a dispatch. */
export type Outcome =
  | { type: 'dispatch_result'; payload: DispatchResultPayload }
  | { type: 'error'; payload: ErrorPayload };

const ENVELOPE_BYTES = 1_024;

/**
 * Turns what a handler returned into the frame that ends its dispatch.
 * @param streamed the answer where the handler returned none; it is in the artifact that the chunks were in, so that a
 *   watcher sees one output, not two
 */
export function outcomeOf(result: TaskResult, streamed: Artifact, dispatch: DispatchPayload): Outcome {
  const outcome = build(normalize(result), streamed, dispatch);
  const bytes = Buffer.byteLength(JSON.stringify(outcome.payload));
  if (bytes + ENVELOPE_BYTES <= LIMITS.frameBytes) return outcome;
  return failed({ state: 'failed', message: `the answer has ${bytes} bytes, a frame at most ${LIMITS.frameBytes}` });
}

/** The frame for what a handler threw. */
export function outcomeOfError(error: unknown): Outcome {
  return failed({ state: 'failed', message: error instanceof Error ? error.message : String(error) });
}

function normalize(result: TaskResult): Completed | InputRequired | Failed {
  if (result === undefined) return { state: 'completed' };
  if (typeof result === 'string') return { state: 'completed', parts: [{ kind: 'text', text: result }] };
  return Array.isArray(result) ? { state: 'completed', parts: result } : result;
}

function build(result: Completed | InputRequired | Failed, streamed: Artifact, dispatch: DispatchPayload): Outcome {
  switch (result.state) {
    case 'completed': {
      const artifacts = result.artifacts ?? nonEmpty({ ...streamed, parts: result.parts ?? streamed.parts });
      return completed(task(dispatch, 'completed', artifacts), result.usage);
    }
    case 'input-required':
      return asked(result, task(dispatch, 'input-required', nonEmpty(streamed), result.question.prompt));
    case 'failed':
      return failed(result);
  }
}

function completed(result: Task, usage: Usage | undefined): Outcome {
  return { type: 'dispatch_result', payload: { result, status: { state: 'completed' }, ...(usage && { usage }) } };
}

function asked({ question, usage }: InputRequired, result: Task): Outcome {
  const status = { state: 'input-required' as const, input_request: question };
  return { type: 'dispatch_result', payload: { result, status, ...(usage && { usage }) } };
}

function failed({ code = 'HANDLER_ERROR', message, retryable = false }: Failed): Outcome {
  return { type: 'error', payload: { code, message: message.slice(0, 4_096), retryable } };
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
