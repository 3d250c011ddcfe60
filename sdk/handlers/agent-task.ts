import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { AgentInputRequest } from '../../contracts/api/messages.js';
import type { MessageMetadata, RoutingOptions } from '../client/send/send-options.js';
import type { StreamEvent, Task } from '../client/send/sent-task.js';
import type { InputSchema, JsonSchema, SchemaOutput } from '../schema/schema.js';
import type { StandardSchema } from '../schema/standard-schema.js';
import type { Search } from '../tools/search.js';
import type { CallTool } from '../tools/tool-caller.js';
import type { TaskFile } from './task-files.js';

/** What a human decided about a message: the answer to a question of this agent, or to what a policy, a guard or a plan asked. */
export interface TaskResolution {
  requestId: string;
  /** `approved`, `rejected`, `confirmed`, `submitted` or `declined`. */
  resolution: string;
  /** Whether the human agreed, or filled in the form. */
  accepted: boolean;
  /** The values of the form. */
  data?: Record<string, unknown>;
  comment?: string;
  /** Of a tool call: the arguments as the human edited them. */
  arguments?: Record<string, unknown>;
  /** Who asked, and what: `agent` for a question of `task.ask`. */
  source?: 'agent' | 'policy' | 'guard' | 'plan';
  kind?: Question['kind'];
  title?: string;
}

/** The answer to a form with a schema that checks it: `data` has passed it. */
export type FormResolution<Data> =
  | (Omit<TaskResolution, 'data'> & { accepted: true; data: Data })
  | (Omit<TaskResolution, 'data'> & { accepted: false });

/** A question to a human. The message waits in `input-required` until it is answered, for 24 hours by default. */
export interface Question {
  kind: 'confirmation' | 'form' | 'approval';
  title: string;
  prompt: string;
  /** JSON Schema of a form, without nested objects. */
  schema?: JsonSchema;
  fields?: AgentInputRequest['fields'];
  /** The action that the answer decides on, shown to the human. */
  tool?: string;
  arguments?: Record<string, unknown>;
}

/** A form with a schema of zod, valibot or arktype without nested objects, which types and checks the answer. */
export interface FormQuestion<Schema extends StandardSchema> {
  kind: 'form';
  title: string;
  prompt: string;
  schema: Schema;
}

/** What the agent used for a message. */
export interface ReportedUsage {
  inputTokens: number;
  outputTokens: number;
  model?: string;
  /** The agent's own price, in place of the tenant's. */
  costUsd?: number;
}

/** A named output. Without an id it gets one by its place. */
export type NewArtifact = Omit<Artifact, 'artifactId'> & { artifactId?: string; extensions?: string[] };

export interface Completed {
  state: 'completed';
  /** The text of the answer; before `parts` where both are given. Without either the streamed output is the answer. */
  text?: string;
  parts?: Part[];
  /** Named outputs, instead of `text` and `parts`. */
  artifacts?: NewArtifact[];
  usage?: ReportedUsage;
}

export interface InputRequired {
  state: 'input-required';
  question: Question;
  usage?: ReportedUsage;
}

/** What `task.ask` gives: return it, or await it for the answer. */
export type Ask<Resolution> = InputRequired & PromiseLike<Resolution>;

export interface Failed {
  state: 'failed';
  /** A letter, then at most 63 letters, digits and `_`; callers get it as it is. `HANDLER_ERROR` by default. */
  code?: string;
  message: string;
  retryable?: boolean;
}

/**
 * The result of a handler. Text or parts are the whole answer. With no result, empty text or no parts the streamed output is the answer,
 * which is empty when nothing was streamed. A `TaskResolution` is here because `return task.ask({…})` in an async function has its type.
 */
export type TaskResult = string | Part[] | Completed | InputRequired | Failed | TaskResolution | undefined;

/** One chunk of an answer. */
export type Output = string | Part | Part[];

/** The chunks of an answer: an async generator, any other async iterable, or a web `ReadableStream`. */
export type OutputSource<End = unknown> = AsyncIterable<Output, End> | OutputStream;

/** The members of a web `ReadableStream` that the SDK uses; every type definition of it fits. */
export interface OutputStream {
  getReader(): { read(): Promise<{ done: boolean; value?: Output | undefined }>; cancel(): Promise<void> };
}

/** Tokens as the Vercel AI SDK counts them. */
export interface ModelUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** The members that the SDK uses of what `streamText` of the Vercel AI SDK returns; other libraries may have the same form. */
export interface StreamedModelResult {
  readonly textStream: OutputSource;
  readonly usage?: PromiseLike<ModelUsage>;
  /** Of all steps, where tools were called. */
  readonly totalUsage?: PromiseLike<ModelUsage>;
}

/** The members that the SDK uses of what `generateText` returns. */
export interface ModelResult {
  readonly text: string;
  readonly usage?: ModelUsage;
  readonly totalUsage?: ModelUsage;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler that streams its answer needs no return statement
type HandlerReturn = TaskResult | void | OutputSource<TaskResult | void> | StreamedModelResult | ModelResult;

/** The return value of a handler: a result, the chunks of the answer, or what the Vercel AI SDK's `streamText` or `generateText` gives. The return value of an async generator is the result. */
export type Answer = HandlerReturn | Promise<HandlerReturn>;

/** A message of the session, or its answer. */
export interface Turn {
  role: 'user' | 'agent';
  text: string;
  parts: Part[];
  /** Of both a message and its answer. */
  messageId: string;
  /** Of the message: `completed`, or another; that of an answer that is only begun may still change. */
  state: string;
  /** When the message was sent, ISO 8601. */
  sentAt: string;
  /** Of an answer: the type of the agent that gave it. */
  agentType?: string;
}

export interface HistoryOptions {
  /** Messages at most, each with its answer: 1 to 99, 20 by default; the newest are kept. */
  limit?: number;
}

/** A message that a task sends. */
export interface TaskSendOptions extends Omit<RoutingOptions, 'hops'> {
  /** The session; a new one by default. */
  contextId?: string;
  /** Idempotency key: the same key returns the same task. Derive it from `task.idempotencyKey` where the task may be done again. */
  messageId?: string;
  /** Members of your own, which the other agent gets. */
  metadata?: MessageMetadata;
  /** `false` returns the task at once, in its current state. */
  blocking?: boolean;
  signal?: AbortSignal;
}

/**
 * Sends messages to other agents as part of a task. They carry its trace, have no more time than it has left, and end with it. Each counts one hop
 * more than the message of the task; beyond 16 the platform refuses them, so that agents which send to each other in a loop come to an end.
 */
export interface TaskClient {
  /** Waits for the answer. @throws ApiError (`INVALID_PARAMS` with `metadata.hops` beyond the bound), UnreachableError, the signal's reason */
  send(input: string | Part[], options?: TaskSendOptions): Promise<Task>;
  stream(input: string | Part[], options?: TaskSendOptions): AsyncGenerator<StreamEvent>;
}

/** One message for this agent to answer. */
export interface AgentTask {
  /** The text parts of the message, joined by line feeds. */
  readonly text: string;
  readonly parts: readonly Part[];
  /** The files of the message. */
  readonly files: readonly TaskFile[];
  /** Metadata that the caller sent with the message, including members that the platform does not define. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly sessionId: string;
  /** The user whose session it is, where `/sessions/init` named one. */
  readonly userId: string | undefined;
  readonly messageId: string;
  readonly dispatchId: string;
  readonly skillId: string | undefined;
  /** Arguments of the skill, from the caller's `metadata.args`. */
  readonly args?: Readonly<Record<string, unknown>> | undefined;
  /**
   * The input of the message: its `args`, or else its first data part, or else `{}`, as a schema gives it.
   * @throws InvalidInputError when it does not fit the schema, which fails the message with `INVALID_DISPATCH`
   */
  data<Schema extends InputSchema>(schema: Schema): Promise<SchemaOutput<Schema>>;
  data(): Promise<Record<string, unknown>>;
  /** The number of this attempt at the message, from 1. */
  readonly attempt: number;
  /** The answer to the question that this agent asked last about this message; undefined when it has asked none. */
  readonly resolution: TaskResolution | undefined;
  /** Everything that humans decided about this message, the oldest first. */
  readonly resolutions: readonly TaskResolution[];
  /** Milliseconds that were left for the answer when the task arrived. */
  readonly deadlineMs: number;
  /** Milliseconds that are left for the answer now. */
  readonly remainingMs: number;
  /**
   * The same in every attempt at this message since the last answer of a human: a key for what must not be done twice when a message to an idempotent
   * skill is dispatched again.
   */
  readonly idempotencyKey: string;
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
  /** Earlier messages of the session that this agent may see, with their answers, the oldest first. Read from the platform by each call. */
  history(options?: HistoryOptions): Promise<Turn[]>;
  /** The state of another message that this agent may see (`submitted` to `canceled`), read from the platform; undefined where there is none. */
  stateOf(messageId: string): Promise<string | undefined>;
  /** Sends messages to other agents. */
  readonly client: TaskClient;
  /** Calls a tool of another agent, or of the platform. The call is aborted when the task ends. */
  readonly callTool: CallTool;
  /** Searches knowledge bases; results carry citations. */
  readonly search: Search;
  /**
   * Asks a human. `await task.ask({…})` gives the answer: until there is one, this run of the handler ends here (nothing after it runs, not
   * even `finally`), and the handler runs again from its beginning when a human has answered. Questions that were answered in earlier runs
   * then get their answers at once, in the order in which they were asked, known by kind and title.
   *
   * `return task.ask({…})` asks without waiting: the handler runs again with `resolution`.
   *
   * A question that is neither awaited nor returned fails the task with HANDLER_ERROR, and nobody is asked.
   */
  ask<Schema extends StandardSchema>(question: FormQuestion<Schema>): Ask<FormResolution<SchemaOutput<Schema>>>;
  ask(question: Question): Ask<TaskResolution>;
}
