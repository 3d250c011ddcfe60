import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { type ChunkListener, HostedTask, type HostedTaskDeps } from './hosted-task.js';

/**
 * Limit on ended tasks that are kept, because the platform polls for a result when its connection broke: for as many as may be in flight. Those
 * whose result was sent go first.
 */
const ENDED_MAX = LIMITS.dispatchesInFlightPerConnection;

/** All dispatches of a hosted agent, by `dispatch_id`. */
export class HostedTasks {
  readonly #deps: HostedTaskDeps;
  readonly #tasks = new Map<string, HostedTask>();
  #idle: (() => void)[] = [];
  #startedCount = 0;

  constructor(deps: HostedTaskDeps) {
    this.#deps = deps;
  }

  /** Number of different sessions with running tasks. */
  get sessionCount(): number {
    return new Set(this.#running().map((task) => task.dispatch.session_context.session_id)).size;
  }

  get isFull(): boolean {
    return this.#running().length >= LIMITS.dispatchesInFlightPerConnection;
  }

  /** Number of tasks started so far. */
  get startedCount(): number {
    return this.#startedCount;
  }

  /** Whether the platform may still poll for the result of a task whose connection broke. */
  get hasUncollectedResult(): boolean {
    return [...this.#tasks.values()].some((task) => task.isOver && task.isUncollected);
  }

  get(taskId: string): HostedTask | undefined {
    return this.#tasks.get(taskId);
  }

  start(dispatch: DispatchPayload, listener: ChunkListener | null): HostedTask {
    const task = new HostedTask(dispatch, this.#deps, listener);
    this.#tasks.set(dispatch.dispatch_id, task);
    this.#startedCount += 1;
    void task.done.then(() => this.#ended());
    return task;
  }

  /** Resolves when no task runs. */
  async idle(): Promise<void> {
    if (this.#running().length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  abortAll(code: string): void {
    for (const task of this.#running()) task.abort(code);
  }

  #ended(): void {
    const over = [...this.#tasks].filter(([, task]) => task.isOver);
    const sent = over.filter(([, task]) => !task.isUncollected);
    const uncollected = over.filter(([, task]) => task.isUncollected);
    const excess = Math.max(0, over.length - ENDED_MAX);
    for (const [id] of [...sent, ...uncollected].slice(0, excess)) this.#tasks.delete(id);
    if (this.#running().length === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #running(): HostedTask[] {
    return [...this.#tasks.values()].filter((task) => !task.isOver);
  }
}
