import { CancellationScope, continueAsNew, isCancellation, sleep, workflowInfo } from '@temporalio/workflow';
import type { DueAttempt } from '../activities/deliver.js';
import type { DeliveryInput } from './definitions.js';
import { deliveryRecord, receiver } from './stubs.js';
import { show } from './visibility.js';
import { WakeUps } from './wake-ups.js';

async function attempt(input: DeliveryInput, due: DueAttempt): Promise<void> {
  const { tenant_id, message_id, config_id } = input;
  show('delivering', null, `Notifies \`${config_id}\` that the message is ${due.state}, attempt ${due.attempt}.`);
  if (due.wait_ms > 0) await sleep(due.wait_ms, { summary: `before attempt ${due.attempt}` });
  const { postNotification } = receiver(`${due.state}, attempt ${due.attempt}`);
  const result = await postNotification({ tenant_id, message_id, config_id, sequence: due.sequence });
  if (result) await deliveryRecord.noteAttempt(input, due, result);
}

async function deliverAll(input: DeliveryInput, wakeUps: WakeUps): Promise<void> {
  for (;;) {
    wakeUps.woken = false;
    const due = await deliveryRecord.nextAttempt(input);
    if (due) await attempt(input, due);
    else if (!wakeUps.woken) return;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>(input);
  }
}

/**
 * Makes the deliveries of one push-notification config of one message, in order, and ends. Deliveries and attempts are in Postgres, so the
 * workflow can be recreated. An operator's cancel in the Temporal UI drops the unfinished deliveries.
 */
export async function delivery(input: DeliveryInput): Promise<void> {
  const wakeUps = new WakeUps();
  try {
    await deliverAll(input, wakeUps);
    show('delivered', null, 'All deliveries have ended.');
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => deliveryRecord.dropDeliveries(input));
    throw error;
  }
}
