import type { Completed, ModelResult, ModelUsage, Output, StreamedModelResult, TaskResult } from './agent-task.js';
import { isSource } from './output-source.js';

/** Whether a handler returned what `streamText` gives. */
export function isStreamedModelResult(value: unknown): value is StreamedModelResult {
  return typeof value === 'object' && value !== null && 'textStream' in value && isSource(value.textStream);
}

/** Whether a handler returned what `generateText` gives. */
export function isModelResult(value: unknown): value is ModelResult {
  if (typeof value !== 'object' || value === null || 'state' in value || !('text' in value)) return false;
  return typeof value.text === 'string' && ('usage' in value || 'totalUsage' in value);
}

/** The text of a model as chunks, and at the end what it used. A model that fails, fails the task. */
export async function* chunksOfModel(
  result: StreamedModelResult,
  chunks: AsyncIterable<Output>,
): AsyncGenerator<Output, TaskResult> {
  yield* chunks;
  return completedWith(await (result.totalUsage ?? result.usage));
}

/** The answer of a model. */
export function answerOfModel({ text, usage, totalUsage }: ModelResult): TaskResult {
  return { ...completedWith(totalUsage ?? usage), parts: [{ kind: 'text', text }] };
}

/**
 * The end of a task, with what its models used. Some do not tell how many tokens that was: then there is no usage.
 * @param model its name, by which prices are found
 */
export function completedWith({ inputTokens, outputTokens }: ModelUsage = {}, model?: string): Completed {
  if (inputTokens === undefined && outputTokens === undefined) return { state: 'completed' };
  const usage = {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    ...(model !== undefined && { model }),
  };
  return { state: 'completed', usage };
}
