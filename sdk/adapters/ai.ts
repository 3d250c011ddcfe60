import type { AgentTask, Completed, ModelUsage, Output } from '../handlers/agent-task.js';
import type { MessageHandler } from '../handlers/handlers.js';
import { completedWith } from '../handlers/model-result.js';
import type { CallToolOptions } from '../tools/tool-caller.js';

/** The members of a `streamText` result that the adapter uses: those of AI SDK 5 and later. */
export interface TextStreamResult {
  fullStream: AsyncIterable<{ type: string }>;
}

/** The parts of `fullStream` that matter for the answer. */
type StreamPart =
  | { type: 'text-delta'; text: string }
  | { type: 'file'; file: { base64: string; mediaType: string } }
  | { type: 'tool-call'; toolName: string }
  | { type: 'finish-step'; response: { modelId?: string } }
  | { type: 'finish'; totalUsage: ModelUsage }
  | { type: 'error'; error: unknown }
  | { type: 'abort'; reason?: string }
  | { type: 'tool-approval-request' };

/**
 * A handler whose answer is a stream of the AI SDK: `aiHandler((task) => streamText({ model, prompt: task.text, abortSignal: task.signal }))`, or
 * the `stream` of a `ToolLoopAgent`. Text and files are the answer, calls of tools are reported as status, the tokens of all steps as usage. An
 * error of the model fails the message.
 */
export function aiHandler(
  start: (task: AgentTask) => TextStreamResult | PromiseLike<TextStreamResult>,
): MessageHandler {
  return async function* (task): AsyncGenerator<Output, Completed> {
    const { fullStream } = await start(task);
    let model: string | undefined;
    let used: ModelUsage | undefined;
    for await (const each of fullStream) {
      const part = each as StreamPart;
      if (part.type === 'text-delta') yield part.text;
      else if (part.type === 'file')
        yield { kind: 'file', file: { bytes: part.file.base64, mimeType: part.file.mediaType } };
      else if (part.type === 'tool-call') await task.status(`Calling ${part.toolName}`);
      else if (part.type === 'finish-step') model = part.response.modelId ?? model;
      else if (part.type === 'finish') used = part.totalUsage;
      else if (part.type === 'error') throw part.error;
      else if (part.type === 'abort') throw task.signal.reason ?? new Error(part.reason ?? 'the model was aborted');
      else if (part.type === 'tool-approval-request')
        throw new Error('a tool has needsApproval: let a policy of the platform ask instead, or ask with task.ask');
    }
    return completedWith(used, model);
  };
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
