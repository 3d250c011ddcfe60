import { randomUUID } from 'node:crypto';
import type { A2aMessage, Task } from '../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { Usage } from '../../contracts/api/messages.js';
import { shapeProblem } from '../../contracts/forms/form-shape.js';
import type { DispatchPayload, DispatchResultPayload, ErrorPayload } from '../../contracts/frames.js';
import { toWire } from '../wire/names.js';
import type { Completed, Failed, InputRequired, Question, ReportedUsage } from './agent-task.js';
import { ARTIFACTS, PARTS, QUESTION, USAGE } from './answer-fields.js';
import { InvalidInputError } from './input.js';
import { ANSWER_BYTES_MAX, errorText, isErrorCode, sendable, shown, UnsendableError } from './sendable.js';

/** Type and payload of the frame that ends a dispatch: the agent's result, or an error. */
export type ResultFrame =
  | { type: 'dispatch_result'; payload: DispatchResultPayload }
  | { type: 'error'; payload: ErrorPayload };

type Result = Completed | InputRequired | Failed;

const ANSWER_FORMS =
  "return text, an array of parts, { state: 'completed' | 'input-required' | 'failed', … }, nothing after streaming, or a stream of text";
const MEMBERS = {
  completed: ['state', 'text', 'parts', 'artifacts', 'usage'],
  'input-required': ['state', 'question', 'usage'],
  failed: ['state', 'code', 'message', 'retryable'],
} as const satisfies { [State in Result['state']]: readonly (keyof Extract<Result, { state: State }>)[] };

/**
 * Turns the result of a handler into the frame that ends its dispatch.
 * @param streamed the answer when the handler returned none. A returned answer uses the same artifact id, so that a reader of the stream
 *   sees one output
 * @param onInvalidUsage called with the reason why `usage` is left out; an invalid usage does not fail the answer
 * @throws UnsendableError when the mesh would refuse the frame
 */
export function resultFrameOf(
  result: unknown,
  streamed: Artifact,
  dispatch: DispatchPayload,
  onInvalidUsage: (problem: string) => void,
): ResultFrame {
  const resultFrame = build(normalize(result), streamed, dispatch, onInvalidUsage);
  const bytes = Buffer.byteLength(JSON.stringify(resultFrame.payload));
  if (bytes <= ANSWER_BYTES_MAX) return resultFrame;
  throw new UnsendableError(`the answer has ${bytes} bytes, at most ${ANSWER_BYTES_MAX} can be sent; shorten it`);
}

/** The frame for an error that a handler threw. */
export function errorFrameOf(error: unknown): ResultFrame {
  const code = error instanceof InvalidInputError ? error.code : 'HANDLER_ERROR';
  return { type: 'error', payload: { code, message: errorText(error), retryable: false } };
}

/** The frame for a task that ended before its handler: the agent stopped, its deadline passed, or it was canceled. */
export function abortedFrameOf(code: string): ResultFrame {
  const unfinished = code === 'AGENT_DISCONNECTED';
  return { type: 'error', payload: { code, message: code, retryable: false, ...(unfinished && { unfinished }) } };
}

function normalize(result: unknown): Result {
  if (result === undefined || result === null || result === '') return { state: 'completed' };
  if (typeof result === 'string') return { state: 'completed', text: result };
  if (Array.isArray(result)) return { state: 'completed', parts: result };
  if (typeof result === 'object' && 'state' in result) return result as Result;
  throw new UnsendableError(`the answer is ${shown(result)}; ${ANSWER_FORMS}`);
}

function build(
  result: Result,
  streamed: Artifact,
  dispatch: DispatchPayload,
  onInvalidUsage: (problem: string) => void,
): ResultFrame {
  requireKnownMembers(result);
  switch (result.state) {
    case 'completed': {
      const usage = usageOf(result.usage, onInvalidUsage);
      return completed(taskIn(dispatch, 'completed', artifactsOf(result, streamed)), usage);
    }
    case 'input-required': {
      const question = sendable(result.question, QUESTION);
      requireForm(question);
      const waiting = taskIn(dispatch, 'input-required', nonEmpty(streamed), question.prompt);
      return inputRequired({ ...result, question }, waiting, usageOf(result.usage, onInvalidUsage));
    }
    case 'failed':
      return failed(result);
    default: {
      const { state } = result satisfies never as { state: unknown };
      throw new UnsendableError(`the answer has the state ${shown(state)}; ${ANSWER_FORMS}`);
    }
  }
}

/** What nobody would read is refused: a typo would go unnoticed. */
function requireKnownMembers(result: Result): void {
  const known: readonly string[] | undefined = MEMBERS[result.state];
  const unknown = known && Object.entries(result).find(([name, value]) => value !== undefined && !known.includes(name));
  if (unknown)
    throw new UnsendableError(`an answer that is ${result.state} has no member ${unknown[0]}, but ${known.join(', ')}`);
}

const CHOICES = ['choice', 'select'];

/** @throws UnsendableError for a form that nobody can fill in: the platform refuses such a schema, and a choice without options is none */
function requireForm({ title, schema, fields }: Question): void {
  const problem = schema && shapeProblem(schema);
  if (problem) throw new UnsendableError(`the schema of the form “${title}” is not valid: ${problem}`);
  const empty = fields?.find(({ type, options = [] }) => CHOICES.includes(type) && options.length === 0);
  if (empty)
    throw new UnsendableError(`the field ${empty.id} of the form “${title}” is a ${empty.type} without options`);
}

/** A returned answer replaces the streamed output; without one the streamed output is the answer. */
function artifactsOf({ artifacts, text = '', parts = [] }: Completed, streamed: Artifact): Artifact[] {
  const returned = sendable(artifacts ?? [], ARTIFACTS);
  if (returned.length > 0) return returned.map((each, at) => ({ artifactId: `artifact-${at + 1}`, ...each }));
  const returnedParts = sendable<Part[]>(text === '' ? parts : [{ kind: 'text', text }, ...parts], PARTS);
  return nonEmpty(returnedParts.length > 0 ? { ...streamed, parts: returnedParts } : streamed);
}

function usageOf(usage: ReportedUsage | undefined, onInvalid: (problem: string) => void): Usage | undefined {
  if (usage === undefined || usage === null) return undefined;
  try {
    return sendable(toWire(usage) as Usage, USAGE);
  } catch (error) {
    onInvalid(errorText(error));
    return undefined;
  }
}

function completed(result: Task, usage: Usage | undefined): ResultFrame {
  return { type: 'dispatch_result', payload: { result, status: { state: 'completed' }, ...(usage && { usage }) } };
}

function inputRequired({ question }: InputRequired, result: Task, usage: Usage | undefined): ResultFrame {
  const status = { state: 'input-required' as const, input_request: question };
  return { type: 'dispatch_result', payload: { result, status, ...(usage && { usage }) } };
}

function failed({ code = 'HANDLER_ERROR', message, retryable = false }: Failed): ResultFrame {
  if (!isErrorCode(code)) {
    const problem = `code: ${shown(code)} is not valid; a code has 1 to 64 characters`;
    throw new UnsendableError(`${problem}. The failure was: ${errorText(message)}`);
  }
  return { type: 'error', payload: { code, message: errorText(message), retryable: retryable === true } };
}

function nonEmpty(artifact: Artifact): Artifact[] {
  return artifact.parts.length === 0 ? [] : [artifact];
}

/** The task of a message, as the platform gets it. @param text what its status says */
export function taskIn(
  dispatch: DispatchPayload,
  state: 'completed' | 'input-required' | 'failed',
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
