import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow';
import type { NextAttempt } from '../activities/deliver.js';
import type { AlertDeliveryInput } from './definitions.js';
import { deliveryRecord, receiver } from './stubs.js';
import { show } from './visibility.js';

async function deliver(input: AlertDeliveryInput): Promise<void> {
  let made: number | null = null;
  for (;;) {
    const attempt: number = (made ?? 0) + 1;
    show('delivering', null, `Delivers \`${input.event_type}\` to \`${input.channel_id}\`, attempt ${attempt}.`);
    const next: NextAttempt | null = await receiver(`${input.event_type}, attempt ${attempt}`).attemptAlertDelivery(
      input,
      made,
    );
    if (next === null) return;
    await sleep(next.wait_ms, { summary: `before attempt ${next.made + 1}` });
    made = next.made;
  }
}

/**
 * Makes one delivery of an alert rule to one channel. Attempts and their results are in Postgres. An operator's cancel in the Temporal UI drops
 * the delivery.
 */
export async function alertDelivery(input: AlertDeliveryInput): Promise<void> {
  try {
    await deliver(input);
    show('delivered', null, 'The delivery is over, or waits until its receiver answers again.');
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => deliveryRecord.dropAlertDelivery(input));
    throw error;
  }
}
