import { type Agent, type AgentInputItem, Runner, RunState, type RunToolApprovalItem } from '@openai/agents';
import type { AgentTask, Completed, InputRequired, Output, Question, TaskResolution } from '../handlers/agent-task.js';
import type { MessageHandler } from '../handlers/handlers.js';

/** Keeps the state of runs that wait for an approval, by message: in a database where the agent must survive a restart. */
export interface RunStore {
  load(messageId: string): Promise<string | null | undefined>;
  /** @param keepUntil nobody can answer afterwards: what is older may be deleted, as the state of a message that was canceled never is otherwise */
  save(messageId: string, state: string, keepUntil: Date): Promise<unknown>;
  delete(messageId: string): Promise<unknown>;
}

export interface RunOptions {
  /** The default runner of the SDK by default. */
  runner?: Runner;
  /** The run's input; the text of the message by default. */
  input?(task: AgentTask): string | AgentInputItem[] | Promise<string | AgentInputItem[]>;
  /** Needed by agents with tools that have `needsApproval`. */
  store?: RunStore;
}

/** A question waits for a day, and its answer as long for room on the agent. */
const KEPT_MS = 48 * 60 * 60 * 1_000;

/** What is kept between a question and its answer: the run, and how many answers the message had when it stopped. */
interface SavedRun {
  state: string;
  answers: number;
}

// biome-ignore lint/suspicious/noExplicitAny: agents of any context and output
type AnyAgent = Agent<any, any>;

/**
 * A handler that runs an agent of the OpenAI Agents SDK. Its text streams, the tokens of all its model calls are the usage, and a tool with
 * `needsApproval` asks a human: the answer approves or rejects the call, and the run goes on.
 */
export function openaiHandler(
  agent: AnyAgent,
  { runner = new Runner(), input, store }: RunOptions = {},
): MessageHandler {
  return async function* (task): AsyncGenerator<Output, Completed | InputRequired> {
    const answers = task.resolutions.filter(({ source }) => source === 'agent');
    const saved = parsed(await store?.load(task.messageId));
    const state = saved && (await RunState.fromString(agent, saved.state));
    const asked = state?.getInterruptions() ?? [];
    const given = answers.slice(saved?.answers ?? 0);
    const open = asked[given.length];
    if (open) return ask(open);
    for (const [index, item] of asked.entries()) decide(state, item, given[index]);

    const spent = { input: state?.usage.inputTokens ?? 0, output: state?.usage.outputTokens ?? 0 }; // counted with the question
    const begun = state ?? (input ? await input(task) : task.text);
    const result = await runner.run(agent, begun, { stream: true, signal: task.signal });
    // Text of an agent with an output type is JSON, which the data part below replaces.
    if (agent.outputType === undefined || agent.outputType === 'text')
      yield* result.toTextStream() as unknown as AsyncIterable<string>;
    await result.completed;
    task.signal.throwIfAborted();
    const { inputTokens, outputTokens } = result.state.usage;
    const usage = { inputTokens: inputTokens - spent.input, outputTokens: outputTokens - spent.output };
    const [first] = result.interruptions;
    if (first) {
      if (!store) throw new Error('a tool needs approval, and openaiHandler has no store to keep the run in');
      const kept: SavedRun = { state: result.state.toString(), answers: answers.length };
      await store.save(task.messageId, JSON.stringify(kept), new Date(Date.now() + KEPT_MS));
      return { ...ask(first), usage };
    }
    if (saved) await store?.delete(task.messageId);
    const output: unknown = result.finalOutput;
    const isData = typeof output === 'object' && output !== null;
    const parts = isData && { parts: [{ kind: 'data' as const, data: output as Record<string, unknown> }] };
    return { state: 'completed', usage, ...parts };
  };
}

function parsed(saved: string | null | undefined): SavedRun | undefined {
  return saved ? (JSON.parse(saved) as SavedRun) : undefined;
}

function decide(
  state: RunState<unknown, AnyAgent> | undefined,
  item: RunToolApprovalItem,
  resolution: TaskResolution | undefined,
): void {
  if (resolution?.accepted) state?.approve(item);
  else state?.reject(item, resolution?.comment ? { message: resolution.comment } : {});
}

function ask(item: RunToolApprovalItem): InputRequired {
  const name = item.name ?? 'a tool';
  const question: Question = {
    kind: 'approval',
    title: `Call ${name}?`,
    prompt: `${item.agent.name} wants to call ${name}.`,
    tool: name,
    ...(item.arguments && { arguments: JSON.parse(item.arguments) as Record<string, unknown> }),
  };
  return { state: 'input-required', question };
}
