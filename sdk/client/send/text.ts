import type { StatusUpdate, StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../../contracts/a2a/parts.js';
import { textOf as textOfParts } from '../../../contracts/a2a/text.js';

/** A streamed task has failed, or was canceled or rejected. */
export class TaskFailedError extends Error {
  /** Why, for example `HANDLER_ERROR` or `DEADLINE_EXCEEDED`; the state of the task where the platform names no code. */
  readonly code: string;
  readonly taskId: string;
  /** `failed`, `canceled` or `rejected`. */
  readonly state: string;

  constructor(message: string, detail: { code: string; taskId: string; state: string }) {
    super(message);
    this.name = 'TaskFailedError';
    this.code = detail.code;
    this.taskId = detail.taskId;
    this.state = detail.state;
  }
}

/**
 * The text of a task's answer: that of its artifacts, or where they have none, of its status, which is the question that it asks or why it
 * failed. Also the text of an artifact, of a message, or of parts. Texts are joined by line feeds.
 */
export function textOf(value: Task | { parts: readonly Part[] } | readonly Part[]): string {
  if ('parts' in value) return textOfParts(value.parts);
  if (!('status' in value)) return textOfParts(value);
  const texts = (value.artifacts ?? []).map(({ parts }) => textOfParts(parts)).filter((text) => text !== '');
  return texts.join('\n') || textOfParts(value.status.message?.parts ?? []);
}

/**
 * The text of a streamed answer as it arrives: `for await (const text of textStream(client.stream('Hello')))`. Together the pieces are
 * `textOf` the task. An artifact that is sent again, whole, adds only what is new of it; where it says something else than was streamed, it
 * follows on a line of its own.
 * @throws TaskFailedError when the task ends without being completed
 */
export async function* textStream(events: AsyncIterable<StreamEvent>): AsyncGenerator<string, void> {
  const output = new StreamedText();
  for await (const event of events) {
    for (const piece of piecesOf(event, output)) if (piece !== '') yield piece;
  }
}

function piecesOf(event: StreamEvent, output: StreamedText): string[] {
  switch (event.kind) {
    case 'artifact-update':
      return [output.add(event.artifact, event.append === true)];
    case 'task': {
      const pieces = (event.artifacts ?? []).map((artifact) => output.add(artifact, false));
      return [...pieces, endOf(event.id, event, output)];
    }
    case 'status-update':
      return [event.final ? endOf(event.taskId, event, output) : ''];
    default:
      event satisfies never;
      return []; // of a newer platform
  }
}

/** The text of the status where nothing else was shown. @throws TaskFailedError */
function endOf(
  taskId: string,
  { status, metadata }: Pick<Task | StatusUpdate, 'status' | 'metadata'>,
  output: StreamedText,
): string {
  const { state, message } = status;
  const text = textOfParts(message?.parts ?? []);
  if (['failed', 'canceled', 'rejected'].includes(state)) {
    const { code } = (metadata?.error ?? {}) as { code?: unknown };
    throw new TaskFailedError(text || `the task is ${state}`, { code: String(code ?? state), taskId, state });
  }
  return state !== 'submitted' && state !== 'working' && output.isEmpty ? text : '';
}

/** The text that the reader has of an artifact. */
interface Shown {
  text: string;
  /** Whether it ends in plain text, which further plain text continues. */
  continues: boolean;
}

/** The text of artifacts that grow, or are replaced. */
class StreamedText {
  readonly #shown = new Map<string, Shown>();
  /** The artifact whose text came last; empty before any text. */
  #last = '';

  /** Whether no text was shown. */
  get isEmpty(): boolean {
    return this.#last === '';
  }

  /** Takes an update. @returns what the reader lacks */
  add({ artifactId, parts }: Artifact, append: boolean): string {
    const before = this.#shown.get(artifactId);
    const start: Shown = before && append ? before : { text: '', continues: false };
    const now = parts.reduce(withPart, start);
    this.#shown.set(artifactId, now);
    const known = before?.text ?? '';
    if (now.text === known || (!append && known.startsWith(now.text))) return '';
    const isContinued = now.text.startsWith(known);
    const piece = isContinued ? now.text.slice(known.length) : now.text;
    const needsBreak = this.#last !== '' && (!isContinued || this.#last !== artifactId);
    this.#last = artifactId;
    return needsBreak ? `\n${piece}` : piece;
  }
}

function withPart({ text, continues }: Shown, part: Part): Shown {
  if (part.kind !== 'text') return { text, continues: false };
  const isPlain = !part.metadata;
  return { text: continues && isPlain ? text + part.text : joined(text, part.text), continues: isPlain };
}

const joined = (text: string, more: string) => (text === '' ? more : `${text}\n${more}`);
