import { z } from 'zod';

import { Part } from '../../contracts/a2a/parts.js';
import { LIMITS } from '../../contracts/limits.js';
import { ApiError } from '../client/api/errors.js';
import type { PlatformApi } from '../client/api/platform-api.js';
import type { SendOptions } from '../client/send/send-options.js';
import type { StreamEvent, Task } from '../client/send/sent-task.js';
import type { AgentTask, HistoryOptions, TaskSendOptions, Turn } from '../handlers/agent-task.js';
import type { DispatchedTask } from '../handlers/run-dispatch.js';
import { currentTraceparent } from '../tracing.js';

/** What sends the messages of tasks: a client with the token of the agent. */
export interface Sender {
  send(input: string | Part[], options: SendOptions): Promise<Task>;
  stream(input: string | Part[], options: SendOptions): AsyncGenerator<StreamEvent>;
}

/** Messages that `task.history()` reads unless it is told otherwise. */
const HISTORY_DEFAULT = 20;
/** Pages that it reads at most. More than one only where messages of the session came after this one: they are listed first. */
const HISTORY_PAGES_MAX = 20;
const PAGE_MIN = 25;

const Artifacts = z.array(z.object({ parts: z.array(Part) }));
/** The members of a message's record that a history needs. */
const Listed = z.object({
  messages: z.array(
    z.object({
      message_id: z.string(),
      state: z.string(),
      parts: z.array(Part),
      artifacts: Artifacts,
      user_input: z.string(),
      assistant_output: z.string(),
      created_at: z.string(),
      agent_type: z.string().nullable(),
    }),
  ),
});
type Listed = z.infer<typeof Listed>['messages'][number];
const Found = z.object({ message: z.object({ state: z.string() }) });

/** A message and its answer; one that has no output has no answer. */
function turnsOf(message: Listed): Turn[] {
  const { message_id: messageId, created_at: sentAt, assistant_output: answer, artifacts } = message;
  const of = { messageId, sentAt, state: message.state };
  const answerParts = artifacts.flatMap(({ parts }) => parts);
  const parts = answerParts.length > 0 ? answerParts : [{ kind: 'text' as const, text: answer }];
  const turns: Turn[] = [{ ...of, role: 'user', text: message.user_input, parts: message.parts }];
  if (answer === '' && answerParts.length === 0) return turns;
  const agentType = message.agent_type ?? undefined;
  return [...turns, { ...of, role: 'agent', text: answer, parts, ...(agentType && { agentType }) }];
}

/** The earlier messages of a session with their answers, the oldest first. Messages beside it that came later are left out. */
async function readHistory(
  api: Pick<PlatformApi, 'post'>,
  { sessionId, messageId, signal }: DispatchedTask,
  { limit = HISTORY_DEFAULT }: HistoryOptions,
): Promise<Turn[]> {
  const page_size = Math.min(LIMITS.pageSizeMax, Math.max(PAGE_MIN, limit + 1)); // this message is among them
  const earlier = new Map<string, Listed>(); // messages that come meanwhile move others to the next page
  for (let page = 1; page <= HISTORY_PAGES_MAX && earlier.size < limit; page += 1) {
    const body = { session_id: sessionId, page, page_size };
    const { messages } = await api.post('/messages/get', body, Listed, { retry: true, signal });
    for (const message of messages) if (message.message_id < messageId) earlier.set(message.message_id, message);
    if (messages.length < page_size) break;
  }
  return [...earlier.values()].slice(0, limit).reverse().flatMap(turnsOf);
}

/** The state of a message; undefined for one that is not there, or that this agent may not see. */
async function readState(
  api: Pick<PlatformApi, 'post'>,
  { signal }: DispatchedTask,
  message_id: string,
): Promise<string | undefined> {
  try {
    const { message } = await api.post('/messages/get_by_id', { message_id }, Found, { retry: true, signal });
    return message.state;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** The options of a message that a task sends: its trace, no more time than it has left, one hop more than it came by, and its end. */
function inherited(task: DispatchedTask, { signal, deadlineMs, ...options }: TaskSendOptions): SendOptions {
  const { hops } = task.metadata;
  const leftMs = Math.max(1, Math.floor(task.remainingMs));
  return {
    traceparent: currentTraceparent() || task.traceparent,
    ...options,
    deadlineMs: Math.min(deadlineMs ?? leftMs, leftMs),
    hops: (typeof hops === 'number' ? hops : 0) + 1,
    signal: signal ? AbortSignal.any([task.signal, signal]) : task.signal,
  };
}

/** Adds to a task what the platform is asked for, by the agent's own right. @param sender makes the client, once it is needed */
export function withConversation(
  task: DispatchedTask,
  api: Pick<PlatformApi, 'post'>,
  sender: () => Sender,
): AgentTask {
  return Object.assign(task, {
    history: (options: HistoryOptions = {}) => readHistory(api, task, options),
    stateOf: (messageId: string) => readState(api, task, messageId),
    client: {
      send: (input: string | Part[], options: TaskSendOptions = {}) => sender().send(input, inherited(task, options)),
      stream: (input: string | Part[], options: TaskSendOptions = {}) =>
        sender().stream(input, inherited(task, options)),
    },
  });
}
