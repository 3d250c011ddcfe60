import type { AgentTask, Completed, ModelUsage, Output } from '../handlers/agent-task.js';
import type { MessageHandler } from '../handlers/handlers.js';
import { completedWith } from '../handlers/model-result.js';

/** The members of a Mastra agent (1.0 or later) that the adapter uses. Mastra itself needs Node 22.13 or newer. */
export interface MastraAgent {
  stream(
    messages: string,
    options: Record<string, unknown>,
  ): PromiseLike<{
    fullStream: AsyncIterable<{ type: string; payload?: unknown }>;
    totalUsage: PromiseLike<ModelUsage>;
  }>;
}

export interface MastraOptions {
  /** The input of the agent; the text of the message by default. */
  input?(task: AgentTask): string;
  /**
   * Further options of `agent.stream`. By default the session is the memory's thread, and the user its resource (the session where there is none).
   */
  options?(task: AgentTask): Record<string, unknown>;
  /** The model's name, for the usage and its price. */
  model?: string;
}

/**
 * A handler that runs a Mastra agent: its text is the answer, calls of its tools are reported as status, the tokens of all steps are the
 * usage, and a canceled message aborts it.
 */
export function mastraHandler(agent: MastraAgent, { input, options, model }: MastraOptions = {}): MessageHandler {
  return async function* (task): AsyncGenerator<Output, Completed> {
    const result = await agent.stream(input?.(task) ?? task.text, {
      abortSignal: task.signal,
      memory: { thread: task.sessionId, resource: task.userId ?? task.sessionId },
      ...options?.(task),
    });
    for await (const { type, payload } of result.fullStream) {
      const { text, toolName, error } = (payload ?? {}) as { text?: string; toolName?: string; error?: unknown };
      if (type === 'text-delta') yield text ?? '';
      else if (type === 'tool-call') await task.status(`Calling ${toolName}`);
      else if (type === 'error') throw error;
      else if (type === 'abort') throw task.signal.reason ?? new Error('the agent was aborted');
      else if (type === 'tool-call-approval' || type === 'tool-call-suspended')
        throw new Error(
          `${toolName} waits for a human: let a policy of the platform ask instead, or ask with task.ask`,
        );
    }
    return completedWith(await result.totalUsage, model); // not before: of a run that fails it rejects
  };
}
