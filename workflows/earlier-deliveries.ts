/**
 * Deliveries as workflows made them when alerts and push notifications had a workflow each. New ones start `delivery` (delivery.ts); those that
 * were recorded (test/histories) go on as they did.
 */
import {
  CancellationScope,
  continueAsNew,
  isCancellation,
  proxyLocalActivities,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  DueAttempt,
  EarlierDeliveryActivities,
  EarlierRecordActivities,
} from '../activities/earlier-deliveries.js';
import type { AlertDeliveryInput, PushConfigInput } from './definitions.js';
import { receiverOf, TRANSACTION } from './stubs.js';
import { show } from './visibility.js';
import { WakeUps } from './wake-ups.js';

const record = proxyLocalActivities<EarlierRecordActivities>(TRANSACTION);
const receiver = (summary: string) => receiverOf<EarlierDeliveryActivities>(summary);

async function deliverAlert(input: AlertDeliveryInput): Promise<void> {
  let made: number | null = null;
  for (;;) {
    const attempt: number = (made ?? 0) + 1;
    show('delivering', null, `Delivers \`${input.event_type}\` to \`${input.channel_id}\`, attempt ${attempt}.`);
    const { attemptAlertDelivery } = receiver(`${input.event_type}, attempt ${attempt}`);
    const next: { made: number | null; wait_ms: number } | null = await attemptAlertDelivery(input, made);
    if (next === null) return;
    await sleep(next.wait_ms, { summary: `before attempt ${(next.made ?? 0) + 1}` });
    made = next.made;
  }
}

/** One delivery of an alert rule to one channel. */
export async function alertDelivery(input: AlertDeliveryInput): Promise<void> {
  try {
    await deliverAlert(input);
    show('delivered', null, 'The delivery is over, or waits until its receiver answers again.');
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => record.dropAlertDelivery(input));
    throw error;
  }
}

async function attempt(input: PushConfigInput, due: DueAttempt): Promise<void> {
  const { tenant_id, message_id, config_id } = input;
  show('delivering', null, `Notifies \`${config_id}\` that the message is ${due.state}, attempt ${due.attempt}.`);
  if (due.wait_ms > 0) await sleep(due.wait_ms, { summary: `before attempt ${due.attempt}` });
  const { postNotification } = receiver(`${due.state}, attempt ${due.attempt}`);
  const result = await postNotification({ tenant_id, message_id, config_id, sequence: due.sequence });
  if (result) await record.noteAttempt(input, due, result);
}

async function deliverAll(input: PushConfigInput, wakeUps: WakeUps): Promise<void> {
  for (;;) {
    wakeUps.woken = false;
    const due = await record.nextAttempt(input);
    if (due) await attempt(input, due);
    else if (!wakeUps.woken) return;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof sendAsBefore>(input);
  }
}

/** The push notifications of one config of one message, in order. */
export async function sendAsBefore(input: PushConfigInput): Promise<void> {
  const wakeUps = new WakeUps();
  try {
    await deliverAll(input, wakeUps);
    show('delivered', null, 'All deliveries have ended.');
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => record.dropDeliveries(input));
    throw error;
  }
}
