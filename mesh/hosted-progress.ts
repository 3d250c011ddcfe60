import type { ArtifactUpdate, StatusUpdate, Task } from '../contracts/a2a.js';
import type { DispatchResultPayload } from '../contracts/frames.js';
import { type Artifact, textOf } from '../contracts/parts.js';
import type { BusEvent } from '../messages/bus.js';
import { ChunkLog } from './chunks.js';
import { type HostedAnswer, isSettled } from './hosted-answer.js';

/** What an answer meant. `final`: nothing more is to be waited for. */
export type Heard =
  | { kind: 'more' }
  | { kind: 'final'; payload: DispatchResultPayload }
  | { kind: 'refused'; code: number; message: string }
  | { kind: 'unfit'; problem: string };

const MORE: Heard = { kind: 'more' };

/** What a hosted agent has said about its task so far, told on to whoever watches the message. */
export class HostedProgress {
  /** The agent's own task; undefined until it named one. */
  taskId: string | undefined;
  readonly #chunks: ChunkLog;
  readonly #publish: (event: BusEvent) => void;
  #contextId = '';
  #statusText = '';

  constructor(ownArtifactId: string, publish: (event: BusEvent) => void) {
    this.#chunks = new ChunkLog(ownArtifactId);
    this.#publish = publish;
  }

  /** Artifacts that came before the final answer. */
  artifacts(): Artifact[] {
    return this.#chunks.artifacts();
  }

  /** Takes the next answer. `polled`: a whole task that repeats what is known, its artifacts are taken when it is final. */
  take(answer: HostedAnswer, options: { polled: boolean }): Heard {
    if (answer.kind === 'error') return { ...answer, kind: 'refused' };
    if (answer.kind === 'garbage') return { kind: 'unfit', problem: answer.problem };
    if (answer.kind === 'result') return { kind: 'final', payload: answer.payload };
    if (answer.kind === 'task') return this.#takeTask(answer.task, answer.usage, options.polled);
    return answer.kind === 'update' ? this.#takeUpdate(answer.update) : MORE;
  }

  #takeTask(task: Task, usage: DispatchResultPayload['usage'], polled: boolean): Heard {
    this.#name(task.id, task.contextId);
    if (isSettled(task.status.state)) return { kind: 'final', payload: { result: task, ...(usage && { usage }) } };
    this.#tellStatus(task.status);
    for (const artifact of polled ? [] : (task.artifacts ?? [])) {
      if (!this.#store({ artifact, append: false })) return FULL;
    }
    return MORE;
  }

  #takeUpdate(update: StatusUpdate | ArtifactUpdate): Heard {
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
    return { kind: 'final', payload: { result: task } };
  }

  #name(taskId: string, contextId: string): void {
    this.taskId = taskId;
    if (contextId !== '') this.#contextId = contextId;
  }

  #tellStatus({ message }: Task['status']): void {
    const text = textOf(message?.parts ?? []);
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
