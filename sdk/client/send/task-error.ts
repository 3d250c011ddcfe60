/** A task has failed, or was canceled or rejected: there is no answer. */
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

/** There is no answer yet: the task waits for a human, or it still works. */
export class TaskNotEndedError extends Error {
  readonly taskId: string;
  /** `input-required`, `auth-required`, `submitted`, `working` or `unknown`. */
  readonly state: string;
  /** The question; empty where there is none. */
  readonly text: string;

  constructor(message: string, detail: { taskId: string; state: string; text: string }) {
    super(message);
    this.name = 'TaskNotEndedError';
    this.taskId = detail.taskId;
    this.state = detail.state;
    this.text = detail.text;
  }
}
