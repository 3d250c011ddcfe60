import type { AgentInputRequest, Usage } from '../../contracts/messages.js';
import type { Artifact, Part } from '../../contracts/parts.js';
import type { CallTool } from '../tools/tool-caller.js';

/** How a human answered what this agent asked about the same message. */
export interface TaskResolution {
  requestId: string;
  /** `approved`, `rejected`, `confirmed`, `submitted` or `declined`. */
  resolution: string;
  /** Whether the human said yes, or filled in the form. */
  accepted: boolean;
  /** What was filled in. */
  data?: Record<string, unknown>;
  comment?: string;
}

/** What an agent asks a human for; the message waits in `input-required`, for 24 hours by default. */
export interface Question {
  kind: 'confirmation' | 'form' | 'approval';
  title: string;
  prompt: string;
  /** Flat JSON Schema of a form. */
  schema?: Record<string, unknown>;
  fields?: AgentInputRequest['fields'];
  /** The action that needs the answer, for whoever decides. */
  tool?: string;
  arguments?: Record<string, unknown>;
}

export interface Completed {
  state: 'completed';
  /** The answer; what was streamed when absent. */
  parts?: Part[];
  /** Named outputs in place of `parts`. */
  artifacts?: Artifact[];
  usage?: Usage;
}

export interface InputRequired {
  state: 'input-required';
  question: Question;
  usage?: Usage;
}

export interface Failed {
  state: 'failed';
  /** `HANDLER_ERROR` by default (decisions.md, WebSocket). */
  code?: string;
  message: string;
  retryable?: boolean;
}

/**
 * What a handler returns. Text or parts: the whole answer. Nothing, empty text or no parts: what was streamed is the answer, and the
 * answer is empty where nothing was.
 */
export type TaskResult = string | Part[] | Completed | InputRequired | Failed | undefined;

/** A piece of an answer. */
export type Output = string | Part | Part[];

/** Pieces of an answer one by one: an async generator, any other async iterable, or a web `ReadableStream`. */
export type OutputSource<End = unknown> = AsyncIterable<Output, End> | OutputStream;

/** What a `ReadableStream` has in every library of types. */
export interface OutputStream {
  getReader(): { read(): Promise<{ done: boolean; value?: Output | undefined }>; cancel(): Promise<void> };
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement is one that streamed its answer
type Given = TaskResult | void | OutputSource<TaskResult | void>;

/** What a handler gives back: a result, or pieces of the answer one by one; what an async generator returns is the result. */
export type Answer = Given | Promise<Given>;

/** One message that this agent was given. */
export interface AgentTask {
  /** All text of the message, joined by line feeds. */
  readonly text: string;
  readonly parts: readonly Part[];
  /** What the caller said beside the message, its own members included. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly sessionId: string;
  readonly messageId: string;
  readonly dispatchId: string;
  readonly skillId: string | undefined;
  /** What the caller calls the skill with (`metadata.args`). */
  readonly args?: Readonly<Record<string, unknown>> | undefined;
  /** Rises when the same message is given again. */
  readonly attempt: number;
  /** Present when this message was asked about before, and a human answered. */
  readonly resolution: TaskResolution | undefined;
  /** Milliseconds that were left when the task arrived. */
  readonly deadlineMs: number;
  /** W3C trace context, to hand on to whatever this task calls. */
  readonly traceparent: string;
  /** Aborted when the task is canceled, out of time, or lost to a disconnect; its answer is not wanted any more. */
  readonly signal: AbortSignal;
  /**
   * Sends a piece of the answer at once, or each piece of a source as it comes. Await it: it settles when the connection has room
   * for more.
   * A piece that cannot be sent fails the task.
   * @throws Error for such a piece, when the whole answer grows over a frame's size (1 MiB), or 1 MiB waits unsent because nobody awaited
   */
  stream(output: Output | OutputSource): Promise<void>;
  /** Says what is being done, up to 4,096 characters; not part of the answer. */
  status(text: string): Promise<void>;
  /** Calls a tool of another agent, or of the platform, as part of this task: it ends with it. */
  readonly callTool: CallTool;
  /** Builds the result that asks a human: `return task.ask({…})`. The message comes back with `resolution`. */
  ask(question: Question): InputRequired;
}
