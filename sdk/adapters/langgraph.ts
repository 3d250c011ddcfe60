import { Command } from '@langchain/langgraph';
import type {
  AgentTask,
  Completed,
  Failed,
  InputRequired,
  Output,
  Question,
  ReportedUsage,
  TaskResolution,
} from '../handlers/agent-task.js';
import type { MessageHandler } from '../handlers/handlers.js';
import { type Graph, GraphThread, type Interrupt } from './langgraph-thread.js';

export type { Graph } from './langgraph-thread.js';

const TERMINAL_STATES = new Set(['completed', 'failed', 'canceled']);

export interface GraphOptions {
  /** The graph's input; `{ messages: [{ role: 'user', content: task.text }] }` by default. */
  input?(task: AgentTask): unknown;
  /** The checkpoints' `thread_id`; the session by default, so that the graph remembers the conversation. */
  threadId?(task: AgentTask): string;
  /** Of which nodes the text is the answer; of all by default. */
  nodes?: readonly string[];
  /** The question that an `interrupt(value)` asks; by default the value where it is a `Question`, else a confirmation with the value as its prompt. */
  question?(value: unknown): Question;
  /** What `interrupt` returns in the graph; the `TaskResolution` by default. */
  resume?(resolution: TaskResolution): unknown;
  /** The answer of a graph whose models stream no text; by default the text of the last message, or the values as data. */
  answer?(values: unknown): string | Completed;
}

/**
 * A handler that runs a LangGraph graph: the session is the thread, an `interrupt` is a question to a human, and the answer resumes the graph
 * where it stood, in whichever process has the checkpoints. A message that comes again after its agent was lost goes on from its last checkpoint.
 */
export function graphHandler(graph: Graph, options: GraphOptions = {}): MessageHandler {
  const { nodes, threadId = (task) => task.sessionId, question = questionOf, answer = answerOf } = options;
  return async function* (task): AsyncGenerator<Output, Completed | Failed | InputRequired> {
    const answers = task.resolutions.filter(({ source }) => source === 'agent');
    const thread = new GraphThread(graph, threadId(task));
    const ask = async (interrupt: Interrupt): Promise<InputRequired> => {
      await thread.noteAsked(interrupt, answers.length);
      return { state: 'input-required', question: question(interrupt.value) };
    };

    const before = await thread.state();
    const isOwn = before.messageId === task.messageId;
    let input: unknown = null; // goes on from the last checkpoint
    if (!isOwn) {
      // A message that was canceled, or that nobody answered in time, leaves its thread interrupted.
      const isAnswerable = before.waiting.length > 0 && (await isOpen(task, before.messageId));
      if (isAnswerable) return otherWaits(threadId(task), before.messageId);
      input = options.input?.(task) ?? { messages: [{ role: 'user', content: task.text }] };
    } else if (before.waiting.length > 0) {
      const answered = before.waiting.find(({ answersBefore = answers.length }) => answersBefore < answers.length);
      const resolution = answers[answered?.answersBefore ?? answers.length];
      if (!answered || !resolution) return ask(before.waiting[0] as Interrupt);
      input = resumeOf(answered, options.resume?.(resolution) ?? resolution);
    }

    let usage: ReportedUsage | undefined;
    let hasText = false;
    const isOver = isOwn && before.isOver;
    if (!isOver) {
      const stream = await thread.run(input, task.messageId, task.signal);
      for await (const [chunk, { langgraph_node }] of stream as AsyncIterable<[Chunk, { langgraph_node?: string }]>) {
        if (chunk.getType?.() !== 'ai') continue;
        usage = added(usage, chunk);
        if (nodes && !nodes.includes(langgraph_node ?? '')) continue;
        hasText ||= chunk.text !== '';
        yield chunk.text;
      }
    }
    const after = isOver ? before : await thread.state();
    const counted = usage && { usage };
    const [waiting] = after.waiting;
    if (waiting) return { ...(await ask(waiting)), ...counted };
    if (hasText) return { state: 'completed', ...counted };
    const made = answer(after.values);
    return typeof made === 'string'
      ? { state: 'completed', parts: [{ kind: 'text', text: made }], ...counted }
      : { ...counted, ...made };
  };
}

/** Whether the message that a thread belongs to may still go on. */
async function isOpen(task: AgentTask, messageId: string | undefined): Promise<boolean> {
  const state = messageId === undefined ? undefined : await task.stateOf(messageId);
  return state !== undefined && !TERMINAL_STATES.has(state);
}

/** The members of a message of LangChain, and of a chunk of one, that the adapter uses. */
interface Chunk {
  getType?(): string;
  text: string;
  usage_metadata?: { input_tokens: number; output_tokens: number };
  response_metadata?: Record<string, unknown>;
}

/** Resumes one interrupt; others of the same step stay. */
function resumeOf({ id }: Interrupt, value: unknown): Command {
  return new Command({ resume: id === undefined ? value : { [id]: value } });
}

function otherWaits(threadId: string, messageId: string | undefined): Failed {
  return {
    state: 'failed',
    code: 'AGENT_BUSY',
    message: `The thread ${threadId} waits for an answer to the message ${messageId}: answer or cancel that one first.`,
    retryable: true,
  };
}

function questionOf(value: unknown): Question {
  const given = typeof value === 'object' && value !== null ? (value as Partial<Question>) : {};
  const prompt = given.prompt ?? (typeof value === 'string' ? value : JSON.stringify(value));
  return { ...given, kind: given.kind ?? 'confirmation', title: given.title ?? 'Shall I go on?', prompt };
}

/** The text of the last message; of a graph without messages all its values. */
function answerOf(values: unknown): string | Completed {
  const { messages } = values as { messages?: Chunk[] };
  if (Array.isArray(messages)) return messages.at(-1)?.text ?? '';
  return { state: 'completed', parts: [{ kind: 'data', data: values as Record<string, unknown> }] };
}

function added(
  usage: ReportedUsage | undefined,
  { usage_metadata: tokens, response_metadata }: Chunk,
): ReportedUsage | undefined {
  if (!tokens) return usage;
  const model = response_metadata?.model_name ?? response_metadata?.model ?? usage?.model;
  return {
    inputTokens: (usage?.inputTokens ?? 0) + tokens.input_tokens,
    outputTokens: (usage?.outputTokens ?? 0) + tokens.output_tokens,
    ...(typeof model === 'string' && { model }),
  };
}
