import { CancellationScope, continueAsNew, isCancellation, sleep, workflowInfo } from '@temporalio/workflow';
import type { NextAttempt } from '../activities/deliver.js';
import type { DeliveryInput } from '../contracts/workflows.js';
import { deliveryRecord, receiver } from './stubs.js';
import { show } from './visibility.js';

async function deliver(input: DeliveryInput): Promise<void> {
  const to = 'config_id' in input ? input.config_id : input.channel_id;
  let next: NextAttempt = { event_type: input.event_type, made: null, wait_ms: 0 };
  for (;;) {
    const what = `${next.event_type}, attempt ${(next.made ?? 0) + 1}`;
    show('delivering', null, `Delivers \`${next.event_type}\` to \`${to}\`, attempt ${(next.made ?? 0) + 1}.`);
    const following = await receiver(what).attemptDelivery(input, next.made);
    if (following === null) return;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>(input);
    next = following;
    if (next.wait_ms > 0) await sleep(next.wait_ms, { summary: `before attempt ${(next.made ?? 0) + 1}` });
  }
}

/**
 * Makes one delivery of an alert rule to one channel, or the push notifications of one config of one message, in order. Deliveries and attempts
 * are in Postgres, so the workflow can be recreated. An operator's cancel in the Temporal UI drops what is not delivered.
 */
export async function delivery(input: DeliveryInput): Promise<void> {
  try {
    await deliver(input);
    show('delivered', null, 'The delivery is over, or waits until its receiver answers again.');
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => deliveryRecord.dropDelivery(input));
    throw error;
  }
}
