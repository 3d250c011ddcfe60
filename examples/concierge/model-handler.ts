import type { AgentTask, ReportedUsage, TaskResult } from '../../sdk/index.js';
import { BoundedMap } from './bounded-map.js';
import { type ChatMessage, complete, type ModelSettings, type ToolCall } from './model.js';
import { type Arguments, type ConciergeTool, refusalText } from './tool.js';

const ROUNDS_MAX = 8;
const SESSIONS_MAX = 1_000;
const TURNS_MAX = 40;
const INSTRUCTIONS =
  'You are the concierge of a fleet of AI agents. Answer briefly. Use the tools for arithmetic, for the state of the fleet ' +
  'and for services. Tools that need a human ask by themselves: call them without asking first.';

/** The state of a conversation while a message is handled: the messages so far, and the tool calls to make. */
interface Progress {
  messages: ChatMessage[];
  calls: ToolCall[];
  usage: ReportedUsage;
}

/** The handler with a model: streams the model's text and makes the tool calls that it requests. */
export class ModelHandler {
  readonly #settings: ModelSettings;
  readonly #tools: ConciergeTool[];
  /** Earlier messages, by session. */
  readonly #sessions = new BoundedMap<ChatMessage[]>(SESSIONS_MAX);
  /** Conversations that wait for a human, by message. */
  readonly #waiting = new BoundedMap<Progress>(SESSIONS_MAX);

  constructor(settings: ModelSettings, tools: ConciergeTool[]) {
    this.#settings = settings;
    this.#tools = tools;
  }

  /** Handles one message. @throws ModelError, which fails it with `HANDLER_ERROR` */
  async handle(task: AgentTask): Promise<TaskResult> {
    const progress = this.#begin(task);
    if (!progress)
      return 'I was restarted since I asked you, and no longer know what about. I did nothing: please ask again.';
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const question = await this.#runCalls(task, progress);
      if (question) return question;
      if (await this.#complete(task, progress)) return this.#finish(task, progress);
    }
    return { state: 'failed', message: `the model made more than ${ROUNDS_MAX} rounds of tool calls` };
  }

  #begin(task: AgentTask): Progress | null {
    if (task.resolution) return this.#waiting.get(task.messageId) ?? null;
    const before = this.#sessions.get(task.sessionId) ?? [];
    const usage = { inputTokens: 0, outputTokens: 0, model: this.#settings.model };
    return { messages: [...before, { role: 'user', content: task.text }], calls: [], usage };
  }

  /** Makes the pending tool calls. @returns the question of the first call that needs a human answer */
  async #runCalls(task: AgentTask, progress: Progress): Promise<TaskResult | null> {
    let answered = this.#waiting.get(task.messageId) === progress ? task.resolution : undefined;
    this.#waiting.delete(task.messageId);
    for (let call = progress.calls[0]; call; call = progress.calls[0]) {
      const tool = this.#tools.find((candidate) => candidate.name === call?.name);
      const args = parseArguments(call.arguments);
      if (tool?.question && !answered) {
        this.#waiting.set(task.messageId, progress);
        const usage = progress.usage;
        progress.usage = { ...usage, inputTokens: 0, outputTokens: 0 };
        // biome-ignore lint/nursery/noMisusedPromises: a copy of what `ask` gives is the plain result
        return { ...task.ask(tool.question(args)), usage };
      }
      const data = answered?.data ?? {};
      const content = await this.#run(
        tool,
        args,
        task,
        answered && !answered.accepted ? refusalText(answered) : null,
        data,
      );
      progress.messages.push({ role: 'tool', toolCallId: call.id, content });
      progress.calls.shift();
      answered = undefined;
    }
    return null;
  }

  async #run(
    tool: ConciergeTool | undefined,
    args: Arguments,
    task: AgentTask,
    refusal: string | null,
    data: Arguments,
  ): Promise<string> {
    if (!tool) return 'There is no such tool.';
    if (refusal !== null) return `The human refused. ${refusal}`;
    await task.status(`using ${tool.name}`);
    return tool.run(args, task, data);
  }

  /** Runs one completion. @returns whether the model requested no more tool calls */
  async #complete(task: AgentTask, progress: Progress): Promise<boolean> {
    const messages: ChatMessage[] = [{ role: 'system', content: INSTRUCTIONS }, ...progress.messages];
    const { text, toolCalls, inputTokens, outputTokens } = await complete(this.#settings, messages, this.#tools, {
      signal: task.signal,
      onText: (piece) => task.stream(piece),
    });
    progress.messages.push({ role: 'assistant', content: text, ...(toolCalls.length > 0 && { toolCalls }) });
    progress.calls = [...toolCalls];
    progress.usage.inputTokens += inputTokens;
    progress.usage.outputTokens += outputTokens;
    return toolCalls.length === 0;
  }

  #finish(task: AgentTask, progress: Progress): TaskResult {
    this.#sessions.set(task.sessionId, lastTurns(progress.messages));
    return { state: 'completed', usage: progress.usage };
  }
}

/** The newest messages, starting with one of the user, so that no tool result is without its call. */
function lastTurns(messages: ChatMessage[]): ChatMessage[] {
  const recent = messages.slice(-TURNS_MAX);
  const first = recent.findIndex((message) => message.role === 'user');
  return first < 0 ? [] : recent.slice(first);
}

/** Parses the arguments that a model wrote; anything but an object is treated as no arguments. */
function parseArguments(text: string): Arguments {
  try {
    const value: unknown = JSON.parse(text || '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Arguments) : {};
  } catch {
    return {}; // the tool reports missing arguments to the model
  }
}
