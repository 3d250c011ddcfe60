import type { ArtifactUpdate, StatusUpdate, Task } from '../../contracts/a2a.js';
import type { DispatchResultPayload } from '../../contracts/frames.js';
import { type Artifact, textOf } from '../../contracts/parts.js';
import type { BusEvent } from '../../messages/stream/bus.js';
import { ChunkLog, STATUS_TEXT_CHARS } from '../connected/chunks.js';
import { type HostedAnswer, isSettled, isWaiting } from './answer.js';

/** What an answer meant. `final`: nothing more is to be waited for. */
export type Heard =
  | { kind: 'more' }
  | { kind: 'final'; payload: DispatchResultPayload }
  | { kind: 'refused'; code: number; message: string }
  | { kind: 'unfit'; problem: string };

/** Where an answer came from. */
type AnswerSource = 'answer' | 'stream' | 'poll';

const MORE: Heard = { kind: 'more' };

/** What a hosted agent has said about its task so far, told on to whoever watches the message. */
export class HostedProgress {
  /** The agent's own task; undefined until it named one. */
  taskId: string | undefined;
  readonly #chunks: ChunkLog;
  readonly #publish: (event: BusEvent) => void;
  #contextId = '';
  #statusText = '';
  #atStreamEnd: DispatchResultPayload | undefined;

  constructor(ownArtifactId: string, publish: (event: BusEvent) => void) {
    this.#chunks = new ChunkLog(ownArtifactId);
    this.#publish = publish;
  }

  /** Artifacts that came before the final answer. */
  artifacts(): Artifact[] {
    return this.#chunks.artifacts();
  }

  /** Takes the next answer. A polled task repeats what is known: its artifacts are taken when it is final. */
  take(answer: HostedAnswer, source: AnswerSource): Heard {
    if (answer.kind !== 'other') this.#atStreamEnd = undefined;
    if (answer.kind === 'error') return { ...answer, kind: 'refused' };
    if (answer.kind === 'garbage') return { kind: 'unfit', problem: answer.problem };
    if (answer.kind === 'result') return { kind: 'final', payload: answer.payload };
    if (answer.kind === 'task') return this.#takeTask(answer.task, answer.usage, source);
    return answer.kind === 'update' ? this.#takeUpdate(answer.update, answer.usage) : MORE;
  }

  /** A stream has ended: what its last event said is final when that was a task that waits. */
  streamEnded(): Heard {
    return this.#atStreamEnd ? { kind: 'final', payload: this.#atStreamEnd } : MORE;
  }

  #takeTask(task: Task, usage: DispatchResultPayload['usage'], source: AnswerSource): Heard {
    this.#name(task.id, task.contextId);
    if (isSettled(task.status.state)) {
      const payload: DispatchResultPayload = { result: task, ...(usage && { usage }) };
      if (source !== 'stream' || !isWaiting(task.status.state)) return { kind: 'final', payload };
      // The stream of a follow-up begins with the task as the question left it.
      this.#atStreamEnd = payload;
      return MORE;
    }
    this.#tellStatus(task.status);
    for (const artifact of source === 'poll' ? [] : (task.artifacts ?? [])) {
      if (!this.#store({ artifact, append: false })) return FULL;
    }
    return MORE;
  }

  #takeUpdate(update: StatusUpdate | ArtifactUpdate, usage: DispatchResultPayload['usage']): Heard {
    this.#name(update.taskId, update.contextId);
    if (update.kind === 'artifact-update') {
      const { artifact, append, lastChunk } = update;
      return this.#store({ artifact, append: append ?? false, last_chunk: lastChunk }) ? MORE : FULL;
    }
    if (!isSettled(update.status.state)) {
      this.#tellStatus(update.status);
      return MORE;
    }
    const task: Task = { kind: 'task', id: update.taskId, contextId: this.#contextId, status: update.status };
    return { kind: 'final', payload: { result: task, ...(usage && { usage }) } };
  }

  #name(taskId: string, contextId: string): void {
    this.taskId = taskId;
    if (contextId !== '') this.#contextId = contextId;
  }

  #tellStatus({ message }: Task['status']): void {
    const text = textOf(message?.parts ?? [])
      .slice(0, STATUS_TEXT_CHARS)
      .toWellFormed();
    if (text === '' || text === this.#statusText) return;
    this.#statusText = text;
    this.#publish({ kind: 'status_text', text });
  }

  /** Whether there was room for it. */
  #store(chunk: { artifact: Artifact; append: boolean; last_chunk?: boolean }): boolean {
    const verdict = this.#chunks.push({ seq: this.#chunks.count, ...chunk });
    if (verdict.kind !== 'taken') return false;
    for (const event of verdict.events) this.#publish(event);
    return true;
  }
}

const FULL: Heard = { kind: 'unfit', problem: 'is larger than what is kept (1 MiB of streamed artifacts)' };
