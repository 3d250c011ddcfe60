import { defineSignal, setHandler } from '@temporalio/workflow';
import { CANCEL_SIGNAL, RESOLVE_SIGNAL, WAKE_SIGNAL } from '../contracts/workflows.js';

const wake = defineSignal(WAKE_SIGNAL);
const cancel = defineSignal(CANCEL_SIGNAL);
const resolve = defineSignal<[unknown]>(RESOLVE_SIGNAL);

/** Listens to the wake-ups of a workflow. */
export class WakeUps {
  /** A wake-up came since this was set to false: the row may have changed. */
  woken = false;

  constructor() {
    setHandler(wake, () => {
      this.woken = true;
    });
  }
}

/** The wake-ups of a message, and the cancel and the decisions that operators signal. */
export class OperatorSignals extends WakeUps {
  isCanceled = false;
  /** Decisions that are not carried out yet, as operators sent them, unchecked. */
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
