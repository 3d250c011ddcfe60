import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { AgentInputRequest, Usage } from '../../contracts/api/messages.js';
import type { Search } from '../tools/search.js';
import type { CallTool } from '../tools/tool-caller.js';

/** A human's answer to the question that this agent asked about the same message. */
export interface TaskResolution {
  requestId: string;
  /** `approved`, `rejected`, `confirmed`, `submitted` or `declined`. */
  resolution: string;
  /** Whether the human agreed, or filled in the form. */
  accepted: boolean;
  /** The values of the form. */
  data?: Record<string, unknown>;
  comment?: string;
}

/** A question to a human. The message waits in `input-required` until it is answered, for 24 hours by default. */
export interface Question {
  kind: 'confirmation' | 'form' | 'approval';
  title: string;
  prompt: string;
  /** JSON Schema of a form, without nested objects. */
  schema?: Record<string, unknown>;
  fields?: AgentInputRequest['fields'];
  /** The action that the answer decides on, shown to the human. */
  tool?: string;
  arguments?: Record<string, unknown>;
}

export interface Completed {
  state: 'completed';
  /** The answer; the streamed output by default. */
  parts?: Part[];
  /** Named outputs, instead of `parts`. */
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
 * The result of a handler. Text or parts are the whole answer. With no result, empty text or no parts the streamed output is the answer,
 * which is empty when nothing was streamed.
 */
export type TaskResult = string | Part[] | Completed | InputRequired | Failed | undefined;

/** One chunk of an answer. */
export type Output = string | Part | Part[];

/** The chunks of an answer: an async generator, any other async iterable, or a web `ReadableStream`. */
export type OutputSource<End = unknown> = AsyncIterable<Output, End> | OutputStream;

/** The members of a web `ReadableStream` that the SDK uses; every type definition of it fits. */
export interface OutputStream {
  getReader(): { read(): Promise<{ done: boolean; value?: Output | undefined }>; cancel(): Promise<void> };
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler that streams its answer needs no return statement
type HandlerReturn = TaskResult | void | OutputSource<TaskResult | void>;

/** The return value of a handler: a result, or the chunks of the answer. The return value of an async generator is the result. */
export type Answer = HandlerReturn | Promise<HandlerReturn>;

/** One message for this agent to answer. */
export interface AgentTask {
  /** The text parts of the message, joined by line feeds. */
  readonly text: string;
  readonly parts: readonly Part[];
  /** Metadata that the caller sent with the message, including members that the platform does not define. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly sessionId: string;
  readonly messageId: string;
  readonly dispatchId: string;
  readonly skillId: string | undefined;
  /** Arguments of the skill, from the caller's `metadata.args`. */
  readonly args?: Readonly<Record<string, unknown>> | undefined;
  /** The number of this attempt at the message, from 1. */
  readonly attempt: number;
  /** A human's answer to the question that was asked about this message; undefined when there was none. */
  readonly resolution: TaskResolution | undefined;
  /** Milliseconds that were left for the answer when the task arrived. */
  readonly deadlineMs: number;
  /** W3C trace context, to pass on in the task's own requests. */
  readonly traceparent: string;
  /** Aborted when the task is canceled, exceeds its deadline or is lost with the connection. An answer is then ignored. */
  readonly signal: AbortSignal;
  /**
   * Sends a chunk of the answer, or each chunk of a source as it arrives. Await the promise: it resolves when the connection accepts more.
   * A chunk that cannot be sent fails the task.
   * @throws Error for such a chunk, when the answer exceeds the size of a frame (1 MiB), or when more than 1 MiB is unsent because calls
   *   were not awaited
   */
  stream(output: Output | OutputSource): Promise<void>;
  /** Reports progress, up to 4,096 characters. The text is not part of the answer. */
  status(text: string): Promise<void>;
  /** Calls a tool of another agent, or of the platform. The call is aborted when the task ends. */
  readonly callTool: CallTool;
  /** Searches knowledge bases; results carry citations. */
  readonly search: Search;
  /** Builds the result that asks a human: `return task.ask({…})`. When the human answers, the handler runs again with `resolution`. */
  ask(question: Question): InputRequired;
}
