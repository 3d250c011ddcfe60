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

/** What a graph waits for. */
interface Interrupt {
  id?: string;
  value?: unknown;
}

/** The members of a compiled graph that the adapter uses. It needs a checkpointer. */
export interface Graph {
  /** Where the checkpoints are kept. */
  checkpointer?: unknown;
  stream(input: unknown, config: Record<string, unknown>): Promise<AsyncIterable<unknown>>;
  getState(config: Record<string, unknown>): Promise<{
    values: unknown;
    next: readonly string[];
    metadata?: object | undefined;
    tasks: readonly { interrupts?: readonly Interrupt[] }[];
  }>;
}

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

/** What the adapter notes in the metadata of each checkpoint: whose message it is, and how many answers the run knew. */
const MESSAGE = 'fleet_message_id';
const ANSWERS = 'fleet_answers';

/**
 * A handler that runs a LangGraph graph: the session is the thread, an `interrupt` is a question to a human, and the answer resumes the graph
 * where it stood, in whichever process has the checkpoints. A message that comes again after its agent was lost goes on from its last checkpoint.
 */
export function graphHandler(graph: Graph, options: GraphOptions = {}): MessageHandler {
  const { nodes, threadId = (task) => task.sessionId, question = questionOf, answer = answerOf } = options;
  return async function* (task): AsyncGenerator<Output, Completed | Failed | InputRequired> {
    const answers = task.resolutions.filter(({ source }) => source === 'agent');
    const thread = { configurable: { thread_id: threadId(task) } };
    if (!isSaver(graph.checkpointer)) throw new Error('graphHandler: compile the graph with a checkpointer');
    const before = await graph.getState(thread);
    const noted = (before.metadata ?? {}) as Record<string, unknown>;
    const isOwn = noted[MESSAGE] === task.messageId;
    const [waiting] = interruptsOf(before);
    if (waiting && !isOwn) return otherWaits(thread.configurable.thread_id, noted[MESSAGE]);
    const resolution = answers.at(-1);
    if (waiting && (!resolution || answers.length <= Number(noted[ANSWERS])))
      return { state: 'input-required', question: question(waiting.value) };

    const isOver = isOwn && before.next.length === 0;
    let input: unknown = null; // goes on from the last checkpoint
    if (waiting && resolution) input = resumeOf(waiting, options.resume?.(resolution) ?? resolution);
    else if (!isOwn) input = options.input?.(task) ?? { messages: [{ role: 'user', content: task.text }] };
    let usage: ReportedUsage | undefined;
    let hasText = false;
    if (!isOver) {
      const note = { [MESSAGE]: task.messageId, [ANSWERS]: answers.length };
      const run = Object.create(graph, { checkpointer: { value: noting(graph.checkpointer, note) } }) as Graph;
      const stream = await run.stream(input, { ...thread, signal: task.signal, streamMode: 'messages' });
      for await (const [chunk, { langgraph_node }] of stream as AsyncIterable<[Chunk, { langgraph_node?: string }]>) {
        if (chunk.getType?.() !== 'ai') continue;
        usage = added(usage, chunk);
        if (nodes && !nodes.includes(langgraph_node ?? '')) continue;
        hasText ||= chunk.text !== '';
        yield chunk.text;
      }
    }
    const after = isOver ? before : await graph.getState(thread);
    const counted = usage && { usage };
    const [asked] = interruptsOf(after);
    if (asked) return { state: 'input-required', question: question(asked.value), ...counted };
    if (hasText) return { state: 'completed', ...counted };
    const made = answer(after.values);
    return typeof made === 'string'
      ? { state: 'completed', parts: [{ kind: 'text', text: made }], ...counted }
      : { ...counted, ...made };
  };
}

/** The members of a message of LangChain, and of a chunk of one, that the adapter uses. */
interface Chunk {
  getType?(): string;
  text: string;
  usage_metadata?: { input_tokens: number; output_tokens: number };
  response_metadata?: Record<string, unknown>;
}

/** The member of a checkpointer that the adapter replaces. */
interface Saver {
  put(config: unknown, checkpoint: unknown, metadata: object, ...rest: unknown[]): Promise<unknown>;
}

function isSaver(value: unknown): value is Saver {
  return typeof value === 'object' && value !== null && 'put' in value;
}

/** The checkpointer with a note in the metadata of each checkpoint that it writes: LangGraph writes none of its caller's. */
function noting(saver: Saver, note: object): Saver {
  return new Proxy(saver, {
    get: (target, name) => {
      if (name === 'put')
        return (config: unknown, checkpoint: unknown, metadata: object, ...rest: unknown[]) =>
          target.put(config, checkpoint, { ...metadata, ...note }, ...rest);
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

function interruptsOf({ tasks }: Awaited<ReturnType<Graph['getState']>>): Interrupt[] {
  return tasks.flatMap(({ interrupts }) => interrupts ?? []);
}

/** Resumes one interrupt; others of the same step stay. */
function resumeOf({ id }: Interrupt, value: unknown): Command {
  return new Command({ resume: id === undefined ? value : { [id]: value } });
}

function otherWaits(threadId: string, messageId: unknown): Failed {
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
