import type { DispatchPayload } from '../../contracts/frames.js';
import type { AgentLog } from '../log.js';
import type { AgentTask } from './agent-task.js';
import { type Outcome, outcomeOf, outcomeOfError } from './agent-result.js';
import { errorText, UnsendableError } from './sendable.js';
import { taskOf } from './task.js';
import type { TaskOutput } from './task-output.js';
import type { ToolCaller } from '../tools/tool-caller.js';

/** A handler at work. */
export interface HandlerRun {
  /** As logs and errors name it: `onMessage`, `skill refund`, `tool price`. */
  handler: string;
  /** What it gave in the end: a `TaskResult` where it keeps to the types, but anything may come. */
  result: Promise<unknown>;
}

/** Starts the handler of a task. */
export type RunTask = (task: AgentTask) => HandlerRun;

/** What running a dispatch takes. */
export interface RunDeps {
  runTask: RunTask;
  /** The way of the tool calls that handlers make. */
  tools: ToolCaller;
  log: AgentLog;
}

interface DispatchAtWork {
  dispatch: DispatchPayload;
  output: TaskOutput;
  signal: AbortSignal;
}

/**
 * Runs the handler of a dispatch to its end. Never rejects: what the handler throws, and an answer that cannot be sent, become the
 * failure of this dispatch.
 */
export async function runDispatch(work: DispatchAtWork, { runTask, tools, log }: RunDeps): Promise<Outcome> {
  const { dispatch, output, signal } = work;
  const about = { handler: '', dispatch_id: dispatch.dispatch_id };
  try {
    const { handler, result } = runTask(taskOf(dispatch, output, tools, signal));
    about.handler = handler;
    const answer = await result;
    if (output.failure !== null) throw output.failure;
    return outcomeOf(answer, output.artifact, dispatch, (problem) =>
      log.warn({ ...about, problem }, 'usage does not fit and is left out'),
    );
  } catch (error) {
    if (!signal.aborted) logFailure(log, about, error);
    return outcomeOfError(error instanceof UnsendableError ? `${about.handler}: ${error.message}` : error);
  }
}

/** Logs what a handler threw, with its stack. */
export function logFailure(log: AgentLog, about: { handler: string; dispatch_id: string }, error: unknown): void {
  const stack = error instanceof Error ? error.stack : undefined;
  log.error({ ...about, error: errorText(error), ...(stack && { stack }) }, 'handler failed');
}
