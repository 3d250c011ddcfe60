import type {
  AgentTask,
  Completed,
  ModelResult,
  ModelUsage,
  Output,
  StreamedModelResult,
  TaskResult,
} from './agent-task.js';
import { isSource } from './output-source.js';

/** The members of a `streamText` result of AI SDK 5 and later that are read. */
export interface ModelStream {
  fullStream: AsyncIterable<{ type: string }>;
}

/** The parts of `fullStream` that matter for the answer. */
type StreamPart =
  | { type: 'text-delta'; text: string }
  | { type: 'file'; file: { base64: string; mediaType: string } }
  | { type: 'tool-call'; toolName: string }
  | { type: 'finish-step'; response?: { modelId?: string } }
  | { type: 'finish'; totalUsage: ModelUsage }
  | { type: 'error'; error: unknown }
  | { type: 'abort'; reason?: string }
  | { type: 'tool-approval-request' };

/** Whether a handler returned what `streamText` gives. */
export function isModelStream(value: unknown): value is ModelStream {
  if (typeof value !== 'object' || value === null || !('fullStream' in value)) return false;
  return isSource(value.fullStream);
}

/** Whether a handler returned the text of a model as a stream, with what it used. */
export function isStreamedModelResult(value: unknown): value is StreamedModelResult {
  return typeof value === 'object' && value !== null && 'textStream' in value && isSource(value.textStream);
}

/** Whether a handler returned what `generateText` gives. */
export function isModelResult(value: unknown): value is ModelResult {
  if (typeof value !== 'object' || value === null || 'state' in value || !('text' in value)) return false;
  return typeof value.text === 'string' && ('usage' in value || 'totalUsage' in value);
}

/**
 * What a model streams as chunks, and at the end what it used. Text and files are the answer, calls of tools are reported as status. An error of the
 * model is thrown: `textStream` would leave it out, and the answer would end where the model failed.
 */
export async function* chunksOfModelStream(
  { fullStream }: ModelStream,
  task: Pick<AgentTask, 'status' | 'signal'>,
): AsyncGenerator<Output, Completed> {
  let model: string | undefined;
  let used: ModelUsage | undefined;
  for await (const each of fullStream) {
    const part = each as StreamPart;
    if (part.type === 'text-delta') yield part.text;
    else if (part.type === 'file')
      yield { kind: 'file', file: { bytes: part.file.base64, mimeType: part.file.mediaType } };
    else if (part.type === 'tool-call') await task.status(`Calling ${part.toolName}`);
    else if (part.type === 'finish-step') model = part.response?.modelId ?? model;
    else if (part.type === 'finish') used = part.totalUsage;
    else if (part.type === 'error') throw part.error;
    else if (part.type === 'abort') throw task.signal.reason ?? new Error(part.reason ?? 'the model was aborted');
    else if (part.type === 'tool-approval-request')
      throw new Error('a tool has needsApproval: let a policy of the platform ask instead, or ask with task.ask');
  }
  return completedWith(used, model);
}

/** The text of a model as chunks, and at the end what it used. */
export async function* chunksOfModel(
  result: StreamedModelResult,
  chunks: AsyncIterable<Output>,
): AsyncGenerator<Output, TaskResult> {
  yield* chunks;
  return completedWith(await (result.totalUsage ?? result.usage));
}

/** The answer of a model. */
export function answerOfModel({ text, usage, totalUsage }: ModelResult): TaskResult {
  return { ...completedWith(totalUsage ?? usage), text };
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
