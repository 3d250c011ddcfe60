import type { Task } from '../../contracts/a2a.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { ToolDelivery } from '../../contracts/tools.js';
import { readToolDelivery } from '../connected/frames.js';
import { type Outcome, outcomeOfError } from '../handlers/agent-result.js';
import { type HandlerRun, type RunDeps, runDispatch } from '../handlers/run-handler.js';
import { type ChunkContent, TaskOutput } from '../handlers/task-output.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';
import { unlessAborted } from '../unless-aborted.js';

/** What runs tasks and tool calls. */
export interface HostedWork extends RunDeps {
  toolHandlers: ToolHandlers;
}

/** Takes a chunk; settles when there is room for the next. */
export type ChunkListener = (content: ChunkContent) => Promise<void>;

/** One dispatch to a hosted agent, from its request to its outcome. It goes on when its request's connection breaks. */
export class HostedTask {
  readonly dispatch: DispatchPayload;
  /** Settles with the outcome; never rejects. */
  readonly done: Promise<Outcome>;
  readonly #controller = new AbortController();
  readonly #output: TaskOutput;
  #listener: ChunkListener | null = null;
  #outcome: Outcome | null = null;
  #isOwed = false;

  /** @param listener hears the chunks from the first on */
  constructor(dispatch: DispatchPayload, work: HostedWork, listener: ChunkListener | null) {
    this.dispatch = dispatch;
    this.#listener = listener;
    this.#output = new TaskOutput(dispatch.id, (content) => this.#tell(content));
    this.done = this.#run(work);
  }

  get isOver(): boolean {
    return this.#outcome !== null;
  }

  /** Nobody has taken the outcome yet, and somebody may come for it. */
  get isOwed(): boolean {
    return this.#isOwed;
  }

  /** Nobody reads the chunks any more; the answer is kept. */
  unheard(): void {
    this.#listener = null;
    this.#isOwed = true;
  }

  /** Ends it; the handler's signal aborts with an error whose message is `code`. */
  abort(code: string): void {
    this.#controller.abort(new Error(code));
  }

  /** The A2A task as it is now. */
  snapshot(): Task {
    if (this.#outcome) this.#isOwed = false;
    return this.#outcome ? taskOfOutcome(this.#outcome, this.dispatch) : taskIn('working', this.dispatch);
  }

  async #run(deps: HostedWork): Promise<Outcome> {
    const { signal } = this.#controller;
    const inTimeMs = Math.min(this.dispatch.deadline_ms, LIMITS.deadlineMsMax);
    const deadline = setTimeout(() => this.abort('DEADLINE_EXCEEDED'), inTimeMs);
    const call = toolCallIn(this.dispatch);
    const runTask = call ? () => this.#answerCall(call, deps) : deps.runTask;
    const run = runDispatch({ dispatch: this.dispatch, output: this.#output, signal }, { ...deps, runTask });
    try {
      this.#outcome = await unlessAborted(run, signal); // a handler that does not hear is not waited for
    } catch (error) {
      this.#outcome = outcomeOfError(error);
    }
    clearTimeout(deadline);
    return this.#outcome;
  }

  /** A tool's result is one data part, as the platform reads it. */
  #answerCall(call: ToolDelivery, { toolHandlers, tools, log }: HostedWork): HandlerRun {
    const { traceparent } = this.dispatch.session_context.propagation_headers;
    const answer = toolHandlers.run(call, { traceparent, signal: this.#controller.signal, tools, log });
    return { handler: `tool ${call.tool}`, result: answer.then((data) => [{ kind: 'data', data }]) };
  }

  async #tell(content: ChunkContent): Promise<void> {
    if (!this.#controller.signal.aborted) await this.#listener?.(content);
  }
}

/** A tool call comes as a message with one data part; what it is about is in the metadata. */
function toolCallIn({ params, session_context }: DispatchPayload): ToolDelivery | null {
  const call = params.metadata?.tool_call as Record<string, unknown> | undefined;
  if (!call) return null;
  const data = params.message.parts.find((part) => part.kind === 'data')?.data;
  return readToolDelivery({ ...call, arguments: data?.arguments, session_id: session_context.session_id });
}

/** The A2A task of an outcome; `usage` is in its metadata. */
export function taskOfOutcome(outcome: Outcome, dispatch: DispatchPayload): Task {
  if (outcome.type === 'error') return taskIn('failed', dispatch, outcome.payload.message);
  const { result, usage } = outcome.payload;
  return { ...(result as Task), id: dispatch.dispatch_id, ...(usage && { metadata: { usage } }) };
}

/** The A2A task of a dispatch in a state, with a word from the agent. */
export function taskIn(state: Task['status']['state'], dispatch: DispatchPayload, text?: string): Task {
  const id = dispatch.dispatch_id;
  const contextId = dispatch.session_context.session_id;
  const parts = [{ kind: 'text' as const, text: text ?? '' }];
  const messageId = `${id}:status`;
  const message = { kind: 'message' as const, messageId, role: 'agent' as const, parts, taskId: id, contextId };
  const status = { state, timestamp: new Date().toISOString(), ...(text !== undefined && { message }) };
  return { kind: 'task', id, contextId, status };
}
