import { textOf } from '../../contracts/a2a/text.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import type { AgentLog } from '../log.js';
import type { InputSchema } from '../schema/schema.js';
import { searchBy } from '../tools/search.js';
import { callToolBy, type ToolCaller } from '../tools/tool-caller.js';
import { ToolError } from '../tools/tool-error.js';
import { inSpan } from '../tracing.js';
import type { AgentTask, Question } from './agent-task.js';
import { InvalidInputError, inputOf } from './input.js';
import { Questions } from './questions.js';
import { errorFrameOf, type ResultFrame, resultFrameOf } from './result-frame.js';
import { errorText, UnsendableError } from './sendable.js';
import type { TaskDeadline } from './task-deadline.js';
import { filesOf } from './task-files.js';
import type { TaskOutput } from './task-output.js';

/** A running handler. */
export interface HandlerRun {
  /** The handler's name in logs and errors: `onMessage`, `skill refund`, `tool price`. */
  handler: string;
  /** Begins it. The types ask for a `TaskResult`, but a JavaScript program may return anything. */
  result: () => Promise<unknown>;
  /** Whether it makes its own span. */
  isTraced?: boolean;
}

/** A task as its dispatch has it. The agent adds what the platform is asked for (agent/conversation.ts). */
export type DispatchedTask = Omit<AgentTask, 'history' | 'stateOf' | 'client'>;

/** Starts the handler of a task. */
export type RunTask = (task: DispatchedTask) => HandlerRun;

/** Dependencies of `runDispatch`. */
export interface RunDeps {
  runTask: RunTask;
  /** Makes the tool calls of the handlers. */
  tools: ToolCaller;
  log: AgentLog;
}

interface DispatchInput {
  dispatch: DispatchPayload;
  output: TaskOutput;
  signal: AbortSignal;
  deadline?: TaskDeadline;
}

/**
 * Runs the handler of a dispatch. Never rejects: an error that the handler throws, and an answer that cannot be sent, fail this dispatch
 * only.
 */
export async function runDispatch(input: DispatchInput, { runTask, tools, log }: RunDeps): Promise<ResultFrame> {
  const { dispatch, signal, output } = input;
  const { dispatch_id, session_context } = dispatch;
  const fields = { handler: '', message_id: session_context.message_id, dispatch_id };
  try {
    const questions = new Questions(dispatch.params.metadata);
    const task = taskOf(input, { tools, log }, questions);
    const { handler, result, isTraced } = runTask(task);
    fields.handler = handler;
    const ended = async () => {
      const given = await Promise.race([result().then((returned) => questions.resultOf(returned)), questions.asked]);
      if (output.failure !== null) throw output.failure;
      return given;
    };
    const answer = await (isTraced ? ended() : inSpan(handler, task.traceparent, attributesOf(task), ended));
    return resultFrameOf(answer, output.artifact, dispatch, (problem) =>
      log.warn({ ...fields, problem }, 'invalid usage is left out'),
    );
  } catch (error) {
    if (!signal.aborted && !isNormalEnd(error)) logFailure(log, fields, error);
    return errorFrameOf(error instanceof UnsendableError ? `${fields.handler}: ${error.message}` : error);
  }
}

/** A human has said no, or the message was canceled while a call waited: no fault of the handler. */
const NORMAL_ENDS: readonly unknown[] = ['APPROVAL_REJECTED', 'APPROVAL_EXPIRED', 'CANCELED'];

function isNormalEnd(error: unknown): boolean {
  return error instanceof InvalidInputError || (error instanceof ToolError && NORMAL_ENDS.includes(error.code));
}

/** Named as those of the platform's spans. */
function attributesOf({ messageId, sessionId, dispatchId, skillId, attempt }: DispatchedTask) {
  const ids = { 'fleet.message.id': messageId, 'gen_ai.conversation.id': sessionId, 'fleet.dispatch.id': dispatchId };
  return { ...ids, 'fleet.skill.id': skillId, 'fleet.dispatch.attempt': attempt };
}

/** Logs an error that a handler threw, with its stack. */
export function logFailure(
  log: AgentLog,
  fields: { handler: string; message_id?: string; dispatch_id: string },
  error: unknown,
): void {
  const stack = error instanceof Error ? error.stack : undefined;
  log.error({ ...fields, error: errorText(error), ...(stack && { stack }) }, 'handler failed');
}

/** The task that the handler of a dispatch receives. */
function taskOf(
  { dispatch, output, signal, deadline }: DispatchInput,
  { tools, log }: Pick<RunDeps, 'tools' | 'log'>,
  questions: Questions,
): DispatchedTask {
  const { params, session_context: context, dispatch_id, skill_id, args, attempt, deadline_ms } = dispatch;
  const traceparent = context.propagation_headers?.traceparent ?? '';
  const isApproved = questions.resolutions.some(({ source, accepted }) => source !== 'agent' && accepted);
  const callTool = callToolBy(tools, log, { dispatchId: dispatch_id, traceparent, signal, deadline, isApproved });
  return {
    text: textOf(params.message.parts),
    parts: params.message.parts,
    files: filesOf(params.message.parts),
    metadata: params.metadata ?? {},
    sessionId: context.session_id,
    userId: context.user_id,
    messageId: context.message_id,
    dispatchId: dispatch_id,
    skillId: skill_id,
    args,
    data: ((schema: InputSchema = {}) => inputOf({ args, parts: params.message.parts }, schema)) as AgentTask['data'],
    attempt,
    resolution: questions.latest,
    resolutions: questions.resolutions,
    deadlineMs: deadline_ms,
    get remainingMs() {
      return deadline?.leftMs ?? deadline_ms;
    },
    idempotencyKey: dispatch.idempotency_key,
    traceparent,
    signal,
    stream: (chunk) => output.stream(chunk),
    status: (text) => output.status(text),
    callTool,
    search: searchBy(callTool, log),
    ask: ((question: Question) => questions.ask(question)) as AgentTask['ask'],
  };
}
