/** The time that a task has left. It stands still while a tool call of the task waits for a human, as it does on the platform. */
export class TaskDeadline {
  readonly #onPassed: () => void;
  #endsAtMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** Calls that wait, and the time that was left when the first began to. */
  #pauses = 0;
  #leftMs = 0;
  #isStopped = false;

  /** @param onPassed called when the time is over */
  constructor(deadlineMs: number, onPassed: () => void) {
    this.#onPassed = onPassed;
    this.#endsAtMs = performance.now() + deadlineMs;
    this.#arm(deadlineMs);
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return this.#pauses > 0 ? this.#leftMs : Math.max(0, this.#endsAtMs - performance.now());
  }

  /** Stops the clock. @returns what lets it run again, once however often it is called */
  pause(): () => void {
    if (this.#pauses === 0) this.#leftMs = Math.max(1, this.#endsAtMs - performance.now());
    this.#pauses += 1;
    clearTimeout(this.#timer);
    let isPaused = true;
    return () => {
      if (isPaused) this.#resume();
      isPaused = false;
    };
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #resume(): void {
    this.#pauses -= 1;
    if (this.#pauses > 0 || this.#isStopped) return;
    this.#endsAtMs = performance.now() + this.#leftMs;
    this.#arm(this.#leftMs);
  }

  #arm(inMs: number): void {
    this.#timer = setTimeout(this.#onPassed, inMs);
  }
}
