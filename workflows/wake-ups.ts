import { defineSignal, setHandler } from '@temporalio/workflow';
import { WAKE_SIGNAL } from './definitions.js';

const wake = defineSignal(WAKE_SIGNAL);

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
