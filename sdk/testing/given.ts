import type { Part } from '../../contracts/a2a/parts.js';
import type { ToolCallPayload, ToolResult } from '../../contracts/api/tools.js';
import type { SendOptions } from '../client/send/send-options.js';
import type { StreamEvent, Task } from '../client/send/sent-task.js';
import type { HistoryOptions, Question, TaskClient, Turn } from '../handlers/agent-task.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import { failureOf, ToolError } from '../tools/tool-error.js';

/** What a human answers: whether they agree, a resolution (`approved`, `declined`, …), or the values of a form. */
export type HumanAnswer = boolean | string | Record<string, unknown>;

/** What tools of other agents return, by name: a value, or a function of the arguments. */
export type GivenTools = Readonly<Record<string, unknown>>;

type GivenReply = string | Part[];
/** What other agents answer to `task.client`, by their type: text or parts, or a function of what they are sent. */
export type GivenAgents = Readonly<
  Record<string, GivenReply | ((input: string | Part[], options: SendOptions) => GivenReply | Promise<GivenReply>)>
>;

const AGREED = { confirmation: 'confirmed', form: 'submitted', approval: 'approved' };
const REFUSED = { confirmation: 'declined', form: 'declined', approval: 'rejected' };

/** An answer as a dispatch carries it. */
export function resolutionOf({ kind, title }: Question, answer: HumanAnswer, number: number): object {
  const known = { request_id: `req_${number}`, source: 'agent', kind, title };
  if (typeof answer === 'object') return { ...known, resolution: 'submitted', data: answer };
  return { ...known, resolution: typeof answer === 'string' ? answer : (answer ? AGREED : REFUSED)[kind] };
}

/** Answers the tool calls of a test, and keeps them. */
export class ToolsInMemory implements ToolCaller {
  readonly calls: { tool: string; args: Record<string, unknown> }[] = [];
  readonly #tools: GivenTools;

  constructor(tools: GivenTools) {
    this.#tools = tools;
  }

  async call({ tool, arguments: args }: ToolCallPayload): Promise<ToolResult> {
    this.calls.push({ tool, args });
    if (!Object.hasOwn(this.#tools, tool)) {
      return failureOf(new ToolError(`the test has no tool ${tool}: give it in tools`, { code: 'TOOL_NOT_FOUND' }));
    }
    const given = this.#tools[tool];
    try {
      return { ok: true, result: (typeof given === 'function' ? await given(args) : given) ?? null };
    } catch (error) {
      return failureOf(error);
    }
  }
}

/** The session of a test and the other agents in it, as a task sees them. */
export function conversationInMemory(agents: GivenAgents, turns: readonly Turn[]) {
  const send = async (input: string | Part[], options: SendOptions = {}): Promise<Task> => {
    const type = options.agentType ?? '';
    const given = Object.hasOwn(agents, type) ? agents[type] : undefined;
    if (given === undefined) throw new Error(`the test has no agent ${type}: give it in agents`);
    const reply = typeof given === 'function' ? await given(input, options) : given;
    const parts: Part[] = typeof reply === 'string' ? [{ kind: 'text', text: reply }] : reply;
    const of = { kind: 'task', id: `msg_${type}`, contextId: 'ses_test' } as const;
    return { ...of, status: { state: 'completed' }, artifacts: [{ artifactId: 'output', parts }] };
  };
  const client: TaskClient = {
    send: send as TaskClient['send'],
    async *stream(input, options): AsyncGenerator<StreamEvent> {
      yield await send(input, options);
    },
  };
  return {
    client,
    history: async ({ limit = Number.POSITIVE_INFINITY }: HistoryOptions = {}): Promise<Turn[]> => {
      const messages = [...new Set(turns.map(({ messageId }) => messageId))].slice(-limit);
      return turns.filter(({ messageId }) => messages.includes(messageId));
    },
    stateOf: async (id: string) => turns.find(({ messageId }) => messageId === id)?.state,
  };
}
