import type { ModelResult, ModelUsage, Output, ReportedUsage, StreamedModelResult, TaskResult } from './agent-task.js';
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
  return { state: 'completed', ...usageMember(await (result.totalUsage ?? result.usage)) };
}

/** The answer of a model. */
export function answerOfModel({ text, usage, totalUsage }: ModelResult): TaskResult {
  return { state: 'completed', parts: [{ kind: 'text', text }], ...usageMember(totalUsage ?? usage) };
}

/** Some models do not tell how many tokens they used. */
function usageMember({ inputTokens, outputTokens }: ModelUsage = {}): { usage?: ReportedUsage } {
  if (inputTokens === undefined || outputTokens === undefined) return {};
  return { usage: { inputTokens, outputTokens } };
}
