import type { ArtifactUpdate, StatusUpdate, Task } from '../../contracts/a2a/a2a.js';
import type { Artifact } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import type { DispatchResultPayload } from '../../contracts/frames.js';
import type { BusEvent } from '../../messages/stream/bus.js';
import { ChunkLog, STATUS_TEXT_CHARS } from '../connected/chunks.js';
import { type HostedAnswer, isSettled, isWaiting } from './answer.js';

/** What an answer means for the task. `more`: it is not final. */
export type TaskUpdate =
  | { kind: 'more' }
  | { kind: 'final'; payload: DispatchResultPayload }
  | Extract<HostedAnswer, { kind: 'error' | 'invalid' }>;

/** Where an answer came from. */
type AnswerSource = 'answer' | 'stream' | 'poll';

export const MORE: TaskUpdate = { kind: 'more' };
const FULL: TaskUpdate = { kind: 'invalid', problem: 'is larger than what is kept (1 MiB of streamed artifacts)' };

/** What a hosted agent has reported about its task so far. It publishes that to followers of the message. */
export class HostedProgress {
  /** Id of the agent's own task; undefined until the agent names one. */
  taskId: string | undefined;
  readonly #chunks: ChunkLog;
  readonly #publish: (event: BusEvent) => void;
  #contextId = '';
  #statusText = '';
  /** A task that waits for input, when it was the stream's last event. */
  #waitingTask: DispatchResultPayload | undefined;

  constructor(ownArtifactId: string, publish: (event: BusEvent) => void) {
    this.#chunks = new ChunkLog(ownArtifactId);
    this.#publish = publish;
  }

  /** The output that was streamed. */
  get streamed(): Pick<ChunkLog, 'count' | 'times'> {
    return this.#chunks;
  }

  /** Artifacts that came before the final answer. */
  artifacts(): Artifact[] {
    return this.#chunks.artifacts();
  }

  /** Takes the next answer. A polled task repeats what is known, so its artifacts are taken only when it is final. */
  take(answer: HostedAnswer, source: AnswerSource): TaskUpdate {
    if (answer.kind !== 'other') this.#waitingTask = undefined;
    if (answer.kind === 'error' || answer.kind === 'invalid') return answer;
    if (answer.kind === 'result') return { kind: 'final', payload: answer.payload };
    if (answer.kind === 'task') return this.#takeTask(answer.task, answer.usage, source);
    return answer.kind === 'update' ? this.#takeUpdate(answer.update, answer.usage) : MORE;
  }

  /** The stream has ended: a last event with a task that waits for input is final. */
  streamEnded(): TaskUpdate {
    return this.#waitingTask ? { kind: 'final', payload: this.#waitingTask } : MORE;
  }

  #takeTask(task: Task, usage: DispatchResultPayload['usage'], source: AnswerSource): TaskUpdate {
    this.#setIds(task.id, task.contextId);
    if (isSettled(task.status.state)) {
      const payload = { result: task, usage };
      if (source !== 'stream' || !isWaiting(task.status.state)) return { kind: 'final', payload };
      // The stream of a follow-up begins with the task as the question left it, so only the last event counts.
      this.#waitingTask = payload;
      return MORE;
    }
    this.#publishStatus(task.status);
    for (const artifact of source === 'poll' ? [] : (task.artifacts ?? [])) {
      if (!this.#store({ artifact, append: false })) return FULL;
    }
    return MORE;
  }

  #takeUpdate(update: StatusUpdate | ArtifactUpdate, usage: DispatchResultPayload['usage']): TaskUpdate {
    this.#setIds(update.taskId, update.contextId);
    if (update.kind === 'artifact-update') {
      const { artifact, append, lastChunk } = update;
      return this.#store({ artifact, append: append ?? false, last_chunk: lastChunk }) ? MORE : FULL;
    }
    if (!isSettled(update.status.state)) {
      this.#publishStatus(update.status);
      return MORE;
    }
    const task: Task = { kind: 'task', id: update.taskId, contextId: this.#contextId, status: update.status };
    return { kind: 'final', payload: { result: task, usage } };
  }

  #setIds(taskId: string, contextId: string): void {
    this.taskId = taskId;
    if (contextId !== '') this.#contextId = contextId;
  }

  #publishStatus({ message }: Task['status']): void {
    const whole = textOf(message?.parts ?? []);
    const text = whole.slice(0, STATUS_TEXT_CHARS).toWellFormed();
    if (text === '' || text === this.#statusText) return;
    this.#statusText = text;
    this.#publish({ kind: 'status_text', text });
  }

  /** @returns whether there was room for it */
  #store(chunk: { artifact: Artifact; append: boolean; last_chunk?: boolean }): boolean {
    const verdict = this.#chunks.push({ seq: this.#chunks.count, ...chunk });
    if (verdict.kind !== 'taken') return false;
    for (const event of verdict.events) this.#publish(event);
    return true;
  }
}
