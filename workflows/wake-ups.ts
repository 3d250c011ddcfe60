import { defineSignal, setHandler } from '@temporalio/workflow';
import { CANCEL_SIGNAL, RESOLVE_SIGNAL, WAKE_SIGNAL } from '../contracts/workflows.js';

const wake = defineSignal(WAKE_SIGNAL);
const cancel = defineSignal(CANCEL_SIGNAL);
const resolve = defineSignal<[unknown]>(RESOLVE_SIGNAL);

/** Listens to the wake-ups of a workflow. */
export class WakeUps {
  /** The row may have changed since this was set to false. */
  woken = false;

  constructor() {
    setHandler(wake, () => {
      this.woken = true;
    });
  }
}

/** The same of a message, with what operators want of it. */
export class OperatorSignals extends WakeUps {
  isCanceled = false;
  /** Decisions that are to be made, as they were sent. */
  readonly decisions: unknown[] = [];

  constructor() {
    super();
    setHandler(cancel, () => {
      this.isCanceled = true;
      this.woken = true;
    });
    setHandler(resolve, (decision) => {
      this.decisions.push(decision);
      this.woken = true;
    });
  }
}
