import type { StreamEvent as A2aEvent, Task as A2aTask, StatusUpdate } from '../../../contracts/a2a/a2a.js';
import type { Part } from '../../../contracts/a2a/parts.js';
import { textOf as textOfParts } from '../../../contracts/a2a/text.js';
import type { AnswerSchema } from '../api/platform-api.js';
import type { MessageRecord } from '../generated/schema-types.js';
import { isEnd, isWait } from './sent-task.js';
import { StreamedText } from './streamed-text.js';
import { TaskFailedError, TaskNotEndedError } from './task-error.js';

/**
 * The text of a task's answer, or of a message's (`client.messages.waitFor`). Also the text of an artifact, of an A2A message, or of parts.
 * Texts are joined by line feeds. It is never a question, and never an error.
 * @throws TaskNotEndedError for a task that waits for a human or still works
 * @throws TaskFailedError for a task that has ended without an answer
 */
export function textOf(value: A2aTask | MessageRecord | { parts: readonly Part[] } | readonly Part[]): string {
  if (value instanceof Promise)
    throw new TypeError('textOf takes the task, not its promise: textOf(await client.send(…))');
  if ('assistantOutput' in value) {
    requireAnswer(value.messageId, value.state, value.inputRequest?.prompt ?? value.error?.message ?? '', value);
    return value.assistantOutput;
  }
  if ('parts' in value) return textOfParts(value.parts);
  if (!('status' in value)) return textOfParts(value);
  const said = statusText(value);
  requireAnswer(value.id, value.status.state, said, value.metadata);
  const texts = (value.artifacts ?? []).map(({ parts }) => textOfParts(parts)).filter((text) => text !== '');
  return texts.join('\n') || said;
}

/**
 * The first data part of a task's or a message's answer. A schema, of zod for example, reads it.
 * @throws Error for an answer without data; for a task without an answer what `textOf` throws
 */
export function dataOf(value: A2aTask | MessageRecord): Record<string, unknown>;
export function dataOf<T>(value: A2aTask | MessageRecord, schema: AnswerSchema<T>): T;
export function dataOf<T>(value: A2aTask | MessageRecord, schema?: AnswerSchema<T>) {
  textOf(value);
  const part = (value.artifacts ?? []).flatMap(({ parts }) => parts).find(({ kind }) => kind === 'data');
  if (part?.kind !== 'data') throw new Error('the answer has no data part');
  return schema ? schema.parse(part.data) : part.data;
}

export interface TextStreamOptions {
  /** Called when the agent was lost and the answer starts anew; the whole text follows. Without it, text that repeats is dropped. */
  onRestart?: () => void;
}

/**
 * The text of a streamed answer as it arrives: `for await (const text of textStream(client.stream('Hello')))`. Together the pieces are
 * `textOf` the task. An artifact that is sent again, whole, adds only what is new of it; where it says something else than was streamed, it
 * follows on a line of its own.
 * @throws TaskFailedError when the task ends without being completed
 * @throws TaskNotEndedError when it waits for a human: a stream with `throughQuestions` goes on with the answer
 */
export async function* textStream(
  events: AsyncIterable<A2aEvent>,
  { onRestart }: TextStreamOptions = {},
): AsyncGenerator<string, void> {
  if (events instanceof Promise)
    throw new TypeError('textStream takes a stream: textStream(client.stream(…)), not client.send');
  let output = new StreamedText();
  let waiting: TaskNotEndedError | undefined;
  for await (const event of events) {
    if (event.kind === 'status-update' && event.metadata?.restarted === true) {
      if (onRestart) output = new StreamedText();
      else output.startAnew();
      onRestart?.();
    }
    waiting = undefined;
    for (const piece of piecesOf(event, output)) if (piece !== '') yield piece;
    try {
      const last = endOf(event, output);
      if (last !== '') yield last;
    } catch (error) {
      if (!(error instanceof TaskNotEndedError)) throw error;
      waiting = error; // a stream through questions goes on
    }
  }
  if (waiting) throw waiting;
}

function piecesOf(event: A2aEvent, output: StreamedText): string[] {
  switch (event.kind) {
    case 'artifact-update':
      return [output.add(event.artifact, event.append === true)];
    case 'task':
      return (event.artifacts ?? []).map((artifact) => output.add(artifact, false));
    case 'status-update':
      return [];
    default:
      event satisfies never;
      return []; // of a newer platform
  }
}

/** The text of an answer's status where nothing else was shown. Throws what `textOf` throws, but for a task that works. */
function endOf(event: A2aEvent, output: StreamedText): string {
  if (event.kind !== 'task' && (event.kind !== 'status-update' || !event.final)) return '';
  const { state } = event.status;
  if (!isEnd(state) && !isWait(state)) return '';
  const text = statusText(event);
  requireAnswer(event.kind === 'task' ? event.id : event.taskId, state, text, event.metadata);
  return output.isEmpty ? text : '';
}

function requireAnswer(taskId: string, state: string, text: string, about: { error?: unknown } = {}): void {
  if (state === 'completed') return;
  if (isEnd(state)) {
    const { code } = (about.error ?? {}) as { code?: unknown };
    throw new TaskFailedError(text || `the task is ${state}`, { code: String(code ?? state), taskId, state });
  }
  const what = isWait(state) ? `waits for a human: ${text}` : `is ${state}`;
  const remedy = 'Wait for its end: `throughQuestions: true`, or `client.messages.waitForEnd(id)`.';
  throw new TaskNotEndedError(`The task ${what}. ${remedy}`, { taskId, state, text });
}

const statusText = ({ status }: A2aTask | StatusUpdate) => textOfParts(status.message?.parts ?? []);
