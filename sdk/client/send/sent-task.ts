import type { Task as A2aTask, ArtifactUpdate, StatusUpdate, TaskState } from '../../../contracts/a2a/a2a.js';

const ENDED = ['completed', 'failed', 'canceled', 'rejected'] as const satisfies TaskState[];
const WAITING = ['input-required', 'auth-required'] as const satisfies TaskState[];
type Ended = (typeof ENDED)[number];
type Waiting = (typeof WAITING)[number];

interface TaskIn<State extends TaskState> extends A2aTask {
  status: A2aTask['status'] & { state: State };
}

/** A task that has ended: with an answer, or without one. */
export type EndedTask = TaskIn<Ended>;
/** A task that waits for a human. */
export type WaitingTask = TaskIn<Waiting>;
/** A task that goes on: `send` gives it where the answer takes longer than the platform's `SEND_WAIT_MS`. */
export type WorkingTask = TaskIn<Exclude<TaskState, Ended | Waiting>>;
/** A task. `hasEnded` and `isWaiting` tell them apart, also for the compiler. */
export type Task = EndedTask | WaitingTask | WorkingTask;

/** One event of a stream; the first is the task. */
export type StreamEvent = Task | StatusUpdate | ArtifactUpdate;

/** Whether the task has ended. */
export function hasEnded(task: A2aTask): task is EndedTask {
  return isEnd(task.status.state);
}

/** Whether the task waits for a human. */
export function isWaiting(task: A2aTask): task is WaitingTask {
  return isWait(task.status.state);
}

/** Whether a task in this state has ended. */
export const isEnd = (state: string): boolean => ENDED.some((one) => one === state);
/** Whether a task in this state waits for a human. */
export const isWait = (state: string): boolean => WAITING.some((one) => one === state);
