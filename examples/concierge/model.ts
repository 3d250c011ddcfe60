import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';

export interface ModelSettings {
  /** OpenAI-compatible base address, for example `https://api.openai.com/v1`. */
  url: string;
  apiKey?: string;
  model: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text, as the model wrote it. */
  arguments: string;
}

export type ChatMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string; toolCalls?: ToolCall[] }
  | { role: 'tool'; toolCallId: string; content: string };

export interface ModelTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface ModelAnswer {
  text: string;
  toolCalls: ToolCall[];
  inputTokens: number;
  outputTokens: number;
}

/** The model could not be reached, or its answer was invalid. */
class ModelError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ModelError';
  }
}

const Chunk = z.object({
  error: z.object({ message: z.string() }).nullish(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish(),
  choices: z
    .array(
      z.object({
        delta: z
          .object({
            content: z.string().nullish(),
            tool_calls: z
              .array(
                z.object({
                  index: z.int().min(0).max(63).default(0),
                  id: z.string().nullish(),
                  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
                }),
              )
              .nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});
type Chunk = z.infer<typeof Chunk>;
type ToolDelta = NonNullable<NonNullable<NonNullable<Chunk['choices']>[number]['delta']>['tool_calls']>[number];

/** Settings from `LLM_URL`, `LLM_API_KEY` and `LLM_MODEL`; null without `LLM_URL`. */
export function modelSettings(environment: NodeJS.ProcessEnv): ModelSettings | null {
  const { LLM_URL: url, LLM_API_KEY: apiKey, LLM_MODEL: model } = environment;
  return url ? { url, model: model || 'gpt-4o-mini', ...(apiKey && { apiKey }) } : null;
}

/**
 * Runs one streamed chat completion.
 * @param options.onText called with each chunk of text
 * @throws ModelError
 */
export async function complete(
  settings: ModelSettings,
  messages: ChatMessage[],
  tools: ModelTool[],
  options: { signal: AbortSignal; onText(text: string): Promise<void> },
): Promise<ModelAnswer> {
  const answer: ModelAnswer = { text: '', toolCalls: [], inputTokens: 0, outputTokens: 0 };
  for await (const chunk of chunks(settings, messages, tools, options.signal)) {
    if (chunk.error) throw new ModelError(`the model ${settings.model} failed: ${chunk.error.message}`);
    answer.inputTokens = chunk.usage?.prompt_tokens ?? answer.inputTokens;
    answer.outputTokens = chunk.usage?.completion_tokens ?? answer.outputTokens;
    const delta = chunk.choices?.[0]?.delta;
    for (const call of delta?.tool_calls ?? []) mergeCall(answer.toolCalls, call);
    if (!delta?.content) continue;
    answer.text += delta.content;
    await options.onText(delta.content);
  }
  return { ...answer, toolCalls: answer.toolCalls.filter((call) => call.name !== '') };
}

/** Merges a delta into the call with its index. */
function mergeCall(calls: ToolCall[], { index, id, function: delta }: ToolDelta): void {
  while (calls.length <= index) calls.push({ id: `call_${calls.length}`, name: '', arguments: '' });
  const call = calls[index];
  if (!call) return;
  call.id = id || call.id;
  call.name += delta?.name ?? '';
  call.arguments += delta?.arguments ?? '';
}

async function* chunks(
  settings: ModelSettings,
  messages: ChatMessage[],
  tools: ModelTool[],
  signal: AbortSignal,
): AsyncGenerator<Chunk> {
  const response = await request(settings, messages, tools, signal);
  if (!response.body) throw new ModelError(`the model ${settings.model} sent no answer`);
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  try {
    for await (const { data } of events) {
      if (data !== '[DONE]') yield Chunk.parse(JSON.parse(data));
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ModelError(`the model ${settings.model} broke off its answer`, error);
  }
}

async function request(
  { url, apiKey, model }: ModelSettings,
  messages: ChatMessage[],
  tools: ModelTool[],
  signal: AbortSignal,
): Promise<Response> {
  const base = url.replace(/\/+$/, '').replace(/\/chat\/completions$/, '');
  const response = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', ...(apiKey && { authorization: `Bearer ${apiKey}` }) },
    body: JSON.stringify({
      model,
      stream: true,
      stream_options: { include_usage: true },
      messages: messages.map(toWire),
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
    }),
  }).catch((error: unknown) => {
    throw signal.aborted ? error : new ModelError(`the model at ${base} is not reachable`, error);
  });
  if (response.ok) return response;
  throw new ModelError(`the model ${model} answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
}

function toWire(message: ChatMessage): object {
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.toolCallId, content: message.content };
  if (message.role !== 'assistant' || !message.toolCalls?.length)
    return { role: message.role, content: message.content };
  const calls = message.toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    type: 'function',
    function: { name, arguments: text },
  }));
  return { role: 'assistant', content: message.content || null, tool_calls: calls };
}
