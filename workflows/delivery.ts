import {
  CancellationScope,
  continueAsNew,
  defineSignal,
  isCancellation,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { DueAttempt } from '../activities/deliver.js';
import { type DeliveryInput, WAKE_SIGNAL } from './definitions.js';
import { deliveryRecord, receiver } from './stubs.js';
import { show } from './visibility.js';

const wake = defineSignal(WAKE_SIGNAL);

/** What the loop and the signal handler share. */
class Wakeups {
  /** There may be more to tell. */
  woken = false;
}

async function tell(input: DeliveryInput, due: DueAttempt): Promise<void> {
  const { tenant_id, message_id, config_id } = input;
  show('delivering', null, `Tells \`${config_id}\` that the message is ${due.state}, attempt ${due.attempt}.`);
  if (due.wait_ms > 0) await sleep(due.wait_ms, { summary: `before attempt ${due.attempt}` });
  const { postNotification } = receiver(`${due.state}, attempt ${due.attempt}`);
  const result = await postNotification({ tenant_id, message_id, config_id, sequence: due.sequence });
  if (result) await deliveryRecord.noteAttempt(input, due, result);
}

async function tellAll(input: DeliveryInput, wakeups: Wakeups): Promise<void> {
  for (;;) {
    wakeups.woken = false;
    const due = await deliveryRecord.nextAttempt(input);
    if (due) await tell(input, due);
    else if (!wakeups.woken) return;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>(input);
  }
}

/**
 * Tells one push-notification config of one message what there is to tell, in order, and ends. Postgres says what that is and what was
 * tried, so that it may be lost and made again. An operator's cancel in the Temporal UI gives up on what is still to be told.
 */
export async function delivery(input: DeliveryInput): Promise<void> {
  const wakeups = new Wakeups();
  setHandler(wake, () => {
    wakeups.woken = true;
  });
  try {
    await tellAll(input, wakeups);
    show('delivered', null, 'All that there was to tell was told, or given up.');
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => deliveryRecord.dropDeliveries(input));
    throw error;
  }
}
