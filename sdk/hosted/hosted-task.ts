import type { Task } from '../../contracts/a2a/a2a.js';
import type { ToolDelivery } from '../../contracts/api/tools.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { readToolDelivery } from '../connected/frames.js';
import { abortedFrameOf, type ResultFrame } from '../handlers/result-frame.js';
import { type HandlerRun, type RunDeps, runDispatch } from '../handlers/run-dispatch.js';
import { TaskDeadline } from '../handlers/task-deadline.js';
import { type ChunkContent, TaskOutput } from '../handlers/task-output.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';
import { unlessAborted } from '../unless-aborted.js';

/** Dependencies of hosted tasks. */
export interface HostedTaskDeps extends RunDeps {
  toolHandlers: ToolHandlers;
}

/** Receives a chunk; resolves when the connection accepts more. */
export type ChunkListener = (content: ChunkContent) => Promise<void>;

/** One dispatch to a hosted agent. It continues when the connection of its request breaks. */
export class HostedTask {
  readonly dispatch: DispatchPayload;
  /** Resolves with the result; never rejects. */
  readonly done: Promise<ResultFrame>;
  readonly #controller = new AbortController();
  readonly #output: TaskOutput;
  #listener: ChunkListener | null = null;
  #result: ResultFrame | null = null;
  #isUncollected = false;

  /** @param listener receives all chunks */
  constructor(dispatch: DispatchPayload, deps: HostedTaskDeps, listener: ChunkListener | null) {
    this.dispatch = dispatch;
    this.#listener = listener;
    this.#output = new TaskOutput(dispatch.id, (content) => this.#emitChunk(content), this.#controller.signal);
    this.done = this.#run(deps);
  }

  get isOver(): boolean {
    return this.#result !== null;
  }

  /** Whether the connection broke before the result was sent, so that the platform may still poll for it. */
  get isUncollected(): boolean {
    return this.#isUncollected;
  }

  /** Called when the connection breaks: chunks are dropped from here on, the result is kept. */
  detach(): void {
    this.#listener = null;
    this.#isUncollected = true;
  }

  /** Ends the task as failed with `code`; the handler's signal aborts with an error whose message is `code`. */
  abort(code: string): void {
    this.#controller.abort(new Error(code));
  }

  /** The A2A task in its current state. */
  snapshot(): Task {
    if (this.#result) this.#isUncollected = false;
    return this.#result ? taskOfResult(this.#result, this.dispatch) : taskIn('working', this.dispatch);
  }

  async #run(deps: HostedTaskDeps): Promise<ResultFrame> {
    const { signal } = this.#controller;
    const deadlineMs = Math.min(this.dispatch.deadline_ms, LIMITS.deadlineMsMax);
    const deadline = new TaskDeadline(deadlineMs, () => this.abort('DEADLINE_EXCEEDED'));
    const call = toolCallIn(this.dispatch);
    const runTask = call ? () => this.#answerCall(call, deps) : deps.runTask;
    const run = runDispatch({ dispatch: this.dispatch, output: this.#output, signal, deadline }, { ...deps, runTask });
    try {
      this.#result = await unlessAborted(run, signal); // does not wait for a handler that ignores its signal
    } catch {
      this.#result = abortedFrameOf((signal.reason as Error).message); // `runDispatch` never rejects
    }
    deadline.stop();
    return this.#result;
  }

  /** Runs a tool call. The platform expects its result as one data part. */
  #answerCall(call: ToolDelivery, { toolHandlers, tools, log }: HostedTaskDeps): HandlerRun {
    const { traceparent } = this.dispatch.session_context.propagation_headers;
    const deps = { traceparent, signal: this.#controller.signal, tools, log };
    const result = async () => [{ kind: 'data', data: await toolHandlers.run(call, deps) }];
    return { handler: `tool ${call.tool}`, result, isTraced: true };
  }

  async #emitChunk(content: ChunkContent): Promise<void> {
    if (!this.#controller.signal.aborted) await this.#listener?.(content);
  }
}

/** The tool call in a dispatch; null without one. Its arguments are in a data part, everything else is in the metadata. */
function toolCallIn({ params, session_context }: DispatchPayload): ToolDelivery | null {
  const call = params.metadata?.tool_call as Record<string, unknown> | undefined;
  if (!call) return null;
  const data = params.message.parts.find((part) => part.kind === 'data')?.data;
  return readToolDelivery({ ...call, arguments: data?.arguments, session_id: session_context.session_id });
}

/** The A2A task of a result; `usage`, and the `error` of a failure, are in its metadata. */
export function taskOfResult(resultFrame: ResultFrame, dispatch: DispatchPayload): Task {
  if (resultFrame.type === 'error') {
    return { ...taskIn('failed', dispatch, resultFrame.payload.message), metadata: { error: resultFrame.payload } };
  }
  const { result, usage } = resultFrame.payload;
  return { ...(result as Task), id: dispatch.dispatch_id, ...(usage && { metadata: { usage } }) };
}

/** The A2A task of a dispatch in a state, with an optional status text. */
export function taskIn(state: Task['status']['state'], dispatch: DispatchPayload, text?: string): Task {
  const id = dispatch.dispatch_id;
  const contextId = dispatch.session_context.session_id;
  const parts = [{ kind: 'text' as const, text: text ?? '' }];
  const messageId = `${id}:status`;
  const message = { kind: 'message' as const, messageId, role: 'agent' as const, parts, taskId: id, contextId };
  const status = { state, timestamp: new Date().toISOString(), ...(text !== undefined && { message }) };
  return { kind: 'task', id, contextId, status };
}
