import type { Usage } from '../../contracts/messages.js';
import type { AgentTask, TaskResult } from '../../sdk/index.js';
import { BoundedMap } from './bounded-map.js';
import { type ChatMessage, complete, type ModelSettings, type ToolCall } from './model.js';
import { refusalText } from './resolution.js';
import type { Arguments, ConciergeTool } from './tool.js';

const ROUNDS_MAX = 8;
const SESSIONS_MAX = 1_000;
const TURNS_MAX = 40;
const INSTRUCTIONS =
  'You are the concierge of a fleet of AI agents. Answer briefly. Use the tools for arithmetic, for the state of the fleet ' +
  'and for services. Tools that need a human ask by themselves: call them without asking first.';

/** A conversation in the middle of a message: what was said, and the tool calls that are still to be made. */
interface Progress {
  messages: ChatMessage[];
  calls: ToolCall[];
  usage: Usage;
}

/** The same concierge with a model that decides: it streams the model's text and makes the tool calls it asks for. */
export class ModelHandler {
  readonly #settings: ModelSettings;
  readonly #tools: ConciergeTool[];
  /** What was said before, by session. */
  readonly #sessions = new BoundedMap<ChatMessage[]>(SESSIONS_MAX);
  /** Conversations that wait for a human, by message. */
  readonly #asked = new BoundedMap<Progress>(SESSIONS_MAX);

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
      if (await this.#think(task, progress)) return this.#finish(task, progress);
    }
    return { state: 'failed', message: `the model made more than ${ROUNDS_MAX} rounds of tool calls` };
  }

  #begin(task: AgentTask): Progress | null {
    if (task.resolution) return this.#asked.get(task.messageId) ?? null;
    const before = this.#sessions.get(task.sessionId) ?? [];
    const usage = { input_tokens: 0, output_tokens: 0, model: this.#settings.model };
    return { messages: [...before, { role: 'user', content: task.text }], calls: [], usage };
  }

  /** Makes the calls that are due. @returns the question of the first one that needs a human who has not answered yet */
  async #runCalls(task: AgentTask, progress: Progress): Promise<TaskResult | null> {
    let answered = this.#asked.get(task.messageId) === progress ? task.resolution : undefined;
    this.#asked.delete(task.messageId);
    for (let call = progress.calls[0]; call; call = progress.calls[0]) {
      const tool = this.#tools.find((candidate) => candidate.name === call?.name);
      const args = parseArguments(call.arguments);
      if (tool?.question && !answered) {
        this.#asked.set(task.messageId, progress);
        const usage = progress.usage;
        progress.usage = { ...usage, input_tokens: 0, output_tokens: 0 };
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

  /** One completion. @returns whether the model is done */
  async #think(task: AgentTask, progress: Progress): Promise<boolean> {
    const messages: ChatMessage[] = [{ role: 'system', content: INSTRUCTIONS }, ...progress.messages];
    const { text, toolCalls, inputTokens, outputTokens } = await complete(this.#settings, messages, this.#tools, {
      signal: task.signal,
      onText: (piece) => task.stream(piece),
    });
    progress.messages.push({ role: 'assistant', content: text, ...(toolCalls.length > 0 && { toolCalls }) });
    progress.calls = [...toolCalls];
    progress.usage.input_tokens += inputTokens;
    progress.usage.output_tokens += outputTokens;
    return toolCalls.length === 0;
  }

  #finish(task: AgentTask, progress: Progress): TaskResult {
    this.#sessions.set(task.sessionId, lastTurns(progress.messages));
    return { state: 'completed', usage: progress.usage };
  }
}

/** The newest turns, beginning with a user's, so that no tool result stands without its call. */
function lastTurns(messages: ChatMessage[]): ChatMessage[] {
  const recent = messages.slice(-TURNS_MAX);
  const first = recent.findIndex((message) => message.role === 'user');
  return first < 0 ? [] : recent.slice(first);
}

/** A model may write anything; what is not an object of arguments is none. */
function parseArguments(text: string): Arguments {
  try {
    const value: unknown = JSON.parse(text || '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Arguments) : {};
  } catch {
    return {}; // the tool says what it lacks, and the model reads it
  }
}
