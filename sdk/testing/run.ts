import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { ErrorPayload } from '../../contracts/frames.js';
import { type Agent, handlersOf } from '../agent/agent.js';
import type { AnswerSchema } from '../client/api/platform-api.js';
import type { Task } from '../client/send/sent-task.js';
import { dataOf, textOf } from '../client/send/text.js';
import type { Question, ReportedUsage, Turn } from '../handlers/agent-task.js';
import { abortedFrameOf, type ResultFrame, taskIn } from '../handlers/result-frame.js';
import { type DispatchedTask, runDispatch } from '../handlers/run-dispatch.js';
import { TaskDeadline } from '../handlers/task-deadline.js';
import { type ChunkContent, TaskOutput } from '../handlers/task-output.js';
import { namesOf, requireKnownOptions } from '../known-options.js';
import { type AgentLog, SILENT_LOG } from '../log.js';
import { unwrapped } from '../tools/tool-error.js';
import { unlessAborted } from '../unless-aborted.js';
import { fromWire } from '../wire/names.js';
import {
  conversationInMemory,
  type GivenAgents,
  type GivenTools,
  type HumanAnswer,
  resolutionOf,
  ToolsInMemory,
} from './given.js';

export interface RunOptions {
  /** What humans answer, one for each question, in order. */
  answers?: readonly HumanAnswer[];
  skillId?: string;
  /** The arguments of the skill. */
  args?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  tools?: GivenTools;
  agents?: GivenAgents;
  /** What `task.history()` gives. */
  history?: readonly Turn[];
  userId?: string;
  sessionId?: string;
  messageId?: string;
  /** 60,000 by default. */
  deadlineMs?: number;
  traceparent?: string;
  /** Nothing is logged by default. */
  log?: AgentLog;
}

const RUN_OPTIONS = namesOf<RunOptions>({
  answers: true,
  skillId: true,
  args: true,
  metadata: true,
  tools: true,
  agents: true,
  history: true,
  userId: true,
  sessionId: true,
  messageId: true,
  deadlineMs: true,
  traceparent: true,
  log: true,
});

function requireSkill(agent: Agent, skillId: string | undefined): void {
  const skills = handlersOf(agent).messages.skills.map(({ id }) => id);
  if (skillId === undefined || skills.includes(skillId)) return;
  throw new TypeError(`the agent has no skill ${skillId}: it has ${skills.join(', ') || 'none'} (TARGET_UNAVAILABLE)`);
}

/** How a message ended. */
export interface Run {
  /** As a caller gets it. */
  readonly task: Task;
  /** `completed`, `failed`, or `input-required` where `answers` did not answer every question. */
  readonly state: Task['status']['state'];
  /** The text of the answer. @throws TaskFailedError where the message failed; TaskNotEndedError where it waits for a human */
  readonly text: string;
  readonly artifacts: readonly Artifact[];
  /** The parts of all artifacts. */
  readonly parts: readonly Part[];
  /** The data of the answer, as `dataOf` reads it. */
  data(): Record<string, unknown>;
  data<T>(schema: AnswerSchema<T>): T;
  /** The text of each chunk that was streamed in the last run of the handler. */
  readonly pieces: readonly string[];
  /** The texts of `task.status`. */
  readonly statuses: readonly string[];
  /** Everything that humans were asked. */
  readonly questions: readonly Question[];
  readonly toolCalls: readonly { tool: string; args: Record<string, unknown> }[];
  /** Of the last run of the handler. */
  readonly usage: ReportedUsage | undefined;
  /** Why the message failed. */
  readonly error: { code: string; message: string; retryable: boolean } | undefined;
}

/**
 * Gives the agent a message as the platform would, without a server, and runs its handler again for each answer of a human. The agent needs
 * no address and no credential, and must not have joined.
 * @throws TypeError for an unknown option, and for a skill that the agent does not list: the platform would find no agent for it
 */
export async function run(agent: Agent, input: string | Part[] = '', options: RunOptions = {}): Promise<Run> {
  requireKnownOptions('run', options, RUN_OPTIONS);
  requireSkill(agent, options.skillId);
  const parts: Part[] = typeof input === 'string' ? [{ kind: 'text', text: input }] : input;
  const message = new MessageInMemory(agent, parts, options);
  for (const answer of options.answers ?? []) {
    const asked = await message.dispatch();
    if (asked.state !== 'input-required') return asked;
    message.answer(answer);
  }
  return message.dispatch();
}

export interface RunToolOptions {
  tools?: GivenTools;
  /** The type of the agent that calls; `test` by default. */
  callerAgentType?: string;
  /** Nothing is logged by default. */
  log?: AgentLog;
}

/** Calls a tool of the agent, and gives its result. @throws ToolError that its caller would get */
export async function runTool(
  agent: Agent,
  tool: string,
  args: Record<string, unknown> = {},
  { tools = {}, callerAgentType = 'test', log = SILENT_LOG }: RunToolOptions = {},
): Promise<unknown> {
  const of = { dispatch_id: 'call_test', deadline_ms: DEADLINE_MS, idempotency_key: 'call_test' };
  const delivery = { tool, arguments: args, ...of, caller: { agent_type: callerAgentType } };
  const deps = { traceparent: '', signal: new AbortController().signal, tools: new ToolsInMemory(tools), log };
  return unwrapped(await handlersOf(agent).tools.run(delivery, deps));
}

const DEADLINE_MS = 60_000;

/** One message to an agent: the runs of its handler, and the answers between them. */
class MessageInMemory {
  readonly #agent: Agent;
  readonly #parts: Part[];
  readonly #options: RunOptions;
  readonly #tools: ToolsInMemory;
  readonly #resolutions: object[] = [];
  readonly #questions: Question[] = [];
  readonly #statuses: string[] = [];

  constructor(agent: Agent, parts: Part[], options: RunOptions) {
    this.#agent = agent;
    this.#parts = parts;
    this.#options = options;
    this.#tools = new ToolsInMemory(options.tools ?? {});
  }

  answer(answer: HumanAnswer): void {
    const question = this.#questions.at(-1);
    if (question) this.#resolutions.push(resolutionOf(question, answer, this.#resolutions.length + 1));
  }

  async dispatch(): Promise<Run> {
    const pieces: string[] = [];
    const { frame, dispatch } = await this.#run(async ({ status_text, artifact }) => {
      if (status_text !== undefined) this.#statuses.push(status_text);
      for (const part of artifact?.parts ?? []) if (part.kind === 'text') pieces.push(part.text);
    });
    const error = frame.type === 'error' ? frame.payload : undefined;
    const result = frame.type === 'error' ? undefined : frame.payload;
    const task = (error ? failed(dispatch, error) : result?.result) as Task;
    const question = result?.status?.input_request;
    if (question) this.#questions.push(fromWire<Question>(question, { schema: true, fields: true, arguments: true }));
    const artifacts = task.artifacts ?? [];
    const finished = {
      task,
      state: task.status.state,
      artifacts,
      parts: artifacts.flatMap(({ parts }) => parts),
      data: ((schema?: AnswerSchema<unknown>) => (schema ? dataOf(task, schema) : dataOf(task))) as Run['data'],
      pieces,
      statuses: [...this.#statuses],
      questions: [...this.#questions],
      toolCalls: [...this.#tools.calls],
      usage: result?.usage && fromWire<ReportedUsage>(result.usage),
      error: error && { code: error.code, message: error.message, retryable: error.retryable },
    };
    // Not enumerable, as it throws where there is no answer, and a run is printed and compared in tests.
    return Object.defineProperty(finished, 'text', { get: () => textOf(task) }) as typeof finished & Pick<Run, 'text'>;
  }

  async #run(send: (content: ChunkContent) => Promise<void>) {
    const { agents = {}, history = [], log = SILENT_LOG } = this.#options;
    const dispatch = this.#dispatch();
    const end = new AbortController();
    const deadline = new TaskDeadline(dispatch.deadline_ms, () => end.abort(new Error('DEADLINE_EXCEEDED')));
    const deps = {
      runTask: (task: DispatchedTask) =>
        handlersOf(this.#agent).messages.run(Object.assign(task, conversationInMemory(agents, history))),
      tools: this.#tools,
      log,
    };
    const output = new TaskOutput('output', send, end.signal);
    const running = runDispatch({ dispatch, output, signal: end.signal, deadline }, deps);
    const frame: ResultFrame = await unlessAborted(running, end.signal).catch(() =>
      abortedFrameOf('DEADLINE_EXCEEDED'),
    );
    deadline.stop();
    return { frame, dispatch };
  }

  #dispatch() {
    const { skillId, args, metadata, userId, traceparent = '', deadlineMs = DEADLINE_MS } = this.#options;
    const { messageId = 'msg_test', sessionId = 'ses_test' } = this.#options;
    const id = `dsp_${this.#resolutions.length + 1}`;
    const message = { kind: 'message' as const, messageId, role: 'user' as const, parts: this.#parts };
    return {
      jsonrpc: '2.0' as const,
      id,
      method: 'message/stream' as const,
      params: { message, metadata: { ...metadata, resolutions: [...this.#resolutions] } },
      dispatch_id: id,
      ...(skillId !== undefined && { skill_id: skillId }),
      ...(args && { args }),
      deadline_ms: deadlineMs,
      attempt: 1,
      idempotency_key: `${messageId}:${this.#resolutions.length}`,
      session_context: {
        session_id: sessionId,
        tenant_id: 'ten_test',
        ...(userId !== undefined && { user_id: userId }),
        message_id: messageId,
        client_message_id: messageId,
        propagation_headers: { traceparent },
      },
    };
  }
}

const failed = (dispatch: Parameters<typeof taskIn>[0], { code, message, retryable }: ErrorPayload) => ({
  ...taskIn(dispatch, 'failed', [], message),
  metadata: { error: { code, message, retryable } },
});
