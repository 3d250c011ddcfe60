import type { AgentTask, Completed, Output } from '../handlers/agent-task.js';
import type { MessageHandler } from '../handlers/handlers.js';
import { chunksOfModelStream, type ModelStream } from '../handlers/model-result.js';
import type { CallToolOptions } from '../tools/tool-caller.js';

/**
 * A handler whose answer is a stream of the AI SDK: `aiHandler((task) => streamText({ model, prompt: task.text, abortSignal: task.signal }))`, or
 * the `stream` of a `ToolLoopAgent`. Text and files are the answer, calls of tools are reported as status, the tokens of all steps as usage. An
 * error of the model fails the message.
 */
export function aiHandler(start: (task: AgentTask) => ModelStream | PromiseLike<ModelStream>): MessageHandler {
  return async function* (task): AsyncGenerator<Output, Completed> {
    return yield* chunksOfModelStream(await start(task), task);
  };
}

/**
 * What was said in the session, the oldest first, and then this message, as `messages` of `streamText`. Of messages before this one there is their
 * text (none without), as much as `task.history` gives by default.
 */
export async function conversationOf(task: AgentTask): Promise<{ role: 'user' | 'assistant'; content: string }[]> {
  const turns = await task.history();
  const said = turns
    .filter(({ text }) => text !== '')
    .map(({ role, text }) => ({ role: role === 'user' ? role : ('assistant' as const), content: text }));
  return [...said, { role: 'user', content: task.text }];
}

/**
 * A tool for `streamText` that is a tool of another agent, or of the platform. Policies and guards decide about each call, and one that needs a human
 * waits for them; a call that is denied is an error that the model sees.
 * @param name of the tool in the fleet
 */
export function fleetTool<Schema>(
  task: AgentTask,
  name: string,
  { target, ...described }: { description: string; inputSchema: Schema; target?: CallToolOptions['target'] },
) {
  return {
    ...described,
    execute: (input: unknown, { abortSignal }: { abortSignal?: AbortSignal | undefined } = {}): Promise<unknown> =>
      task.callTool(name, input as Record<string, unknown>, {
        ...(target && { target }),
        ...(abortSignal && { signal: abortSignal }),
      }),
  };
}
