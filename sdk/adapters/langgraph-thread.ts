/** What a graph waits for. */
export interface Interrupt {
  id?: string;
  value?: unknown;
}

type Config = Record<string, unknown>;

/** The members of a snapshot of a graph's state that the adapter uses. */
export interface GraphState {
  values: unknown;
  next: readonly string[];
  metadata?: object | undefined;
  config?: object;
  tasks: readonly { id?: string; interrupts?: readonly Interrupt[] }[];
}

/** The members of a compiled graph that the adapter uses. It needs a checkpointer. */
export interface Graph {
  /** Where the checkpoints are kept. */
  checkpointer?: unknown;
  stream(input: unknown, config: Config): Promise<AsyncIterable<unknown>>;
  getState(config: Config): Promise<GraphState>;
}

type Write = [taskId: string, channel: string, value: unknown];

/** The members of a checkpointer that the adapter uses. */
interface Checkpointer {
  put(config: unknown, checkpoint: unknown, metadata: object, ...rest: unknown[]): Promise<unknown>;
  putWrites(config: unknown, writes: [channel: string, value: unknown][], taskId: string): Promise<void>;
  getTuple(config: unknown): Promise<{ pendingWrites?: Write[] } | undefined>;
}

/** An interrupt without an answer. */
export interface WaitingInterrupt extends Interrupt {
  /** How many answers the message had when a human was asked; undefined when nobody was. */
  answersBefore: number | undefined;
}

/** Where a thread stands. */
export interface ThreadState {
  values: unknown;
  /** The message whose run made the newest checkpoint; undefined for none. */
  messageId: string | undefined;
  /** Nothing is left to run. */
  isOver: boolean;
  /** Interrupts of the open step that wait for an answer, in its order. */
  waiting: WaitingInterrupt[];
}

/** The member of a checkpoint's metadata that says whose message it is. */
const MESSAGE = 'fleet_message_id';
/** The channel of the notes about questions. No graph has it. */
const ASKED = 'fleet_asked';
/** Channels of what a task writes before it has ended. */
const UNFINISHED = new Set(['__error__', '__error_source_node__', '__interrupt__', '__resume__', ASKED]);

/** The thread of a graph, with what the adapter notes in its checkpoints: whose message it runs, and which of its questions were asked. */
export class GraphThread {
  readonly #graph: Graph;
  readonly #checkpointer: Checkpointer;
  readonly #config: Config;

  /** @throws Error for a graph without a checkpointer */
  constructor(graph: Graph, threadId: string) {
    if (!isCheckpointer(graph.checkpointer)) throw new Error('graphHandler: compile the graph with a checkpointer');
    this.#graph = graph;
    this.#checkpointer = graph.checkpointer;
    this.#config = { configurable: { thread_id: threadId } };
  }

  async state(): Promise<ThreadState> {
    const { values, next, metadata, config, tasks } = await this.#graph.getState(this.#config);
    const messageId = (metadata as Record<string, unknown> | undefined)?.[MESSAGE];
    const writes = tasks.length > 0 ? ((await this.#checkpointer.getTuple(config))?.pendingWrites ?? []) : [];
    // A task of the open step that has ended keeps its interrupt until the step is over.
    const ended = new Set(writes.filter(([, channel]) => !UNFINISHED.has(channel)).map(([taskId]) => taskId));
    const asked = new Map(writes.filter(([, channel]) => channel === ASKED).map(([id, , answers]) => [id, answers]));
    const waiting = tasks
      .filter(({ id }) => id === undefined || !ended.has(id))
      .flatMap(({ interrupts }) => interrupts ?? [])
      .map((each) => ({ ...each, answersBefore: asked.get(noteOf(each)) as number | undefined }));
    return {
      values,
      messageId: typeof messageId === 'string' ? messageId : undefined,
      isOver: next.length === 0 && waiting.length === 0, // a node that waits for its second answer is not in `next`
      waiting,
    };
  }

  /** Runs the graph for a message, until it is over or interrupted. */
  run(input: unknown, messageId: string, signal: AbortSignal): Promise<AsyncIterable<unknown>> {
    const checkpointer = withNote(this.#checkpointer, { [MESSAGE]: messageId });
    const graph = Object.create(this.#graph, { checkpointer: { value: checkpointer } }) as Graph;
    return graph.stream(input, { ...this.#config, signal, streamMode: 'messages' });
  }

  /** Notes in the newest checkpoint that a human is asked. LangGraph ignores a pending write of a task that it does not know. */
  async noteAsked(interrupt: Interrupt, answers: number): Promise<void> {
    const { config } = await this.#graph.getState(this.#config);
    await this.#checkpointer.putWrites(config, [[ASKED, answers]], noteOf(interrupt));
  }
}

function noteOf({ id }: Interrupt): string {
  return `fleet:${id ?? ''}`;
}

function isCheckpointer(value: unknown): value is Checkpointer {
  return typeof value === 'object' && value !== null && 'put' in value && 'putWrites' in value;
}

/** The checkpointer with a note in the metadata of each checkpoint that it writes: LangGraph writes none of its caller's. */
function withNote(checkpointer: Checkpointer, note: object): Checkpointer {
  return new Proxy(checkpointer, {
    get: (target, name) => {
      if (name === 'put')
        return (config: unknown, checkpoint: unknown, metadata: object, ...rest: unknown[]) =>
          target.put(config, checkpoint, { ...metadata, ...note }, ...rest);
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
