import { ActivityCancellationType, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { DeliveryActivities, DeliveryRecordActivities } from '../activities/deliver.js';
import type { ControlActivities, NodeActivities } from '../activities/node.js';
import type { RecordActivities } from '../activities/record.js';
import type { WatchActivities } from '../activities/watch.js';
import { controlQueue, DELIVERY_QUEUE, HOSTED_QUEUE, nodeQueue } from './definitions.js';

/** Beyond the dispatch's own deadline, so that the node, whose clock decides, closes it first. */
const DEADLINE_MARGIN_MS = 30_000;

/** Transactions on the record. Each is idempotent and takes milliseconds; while the database is away they are repeated for ever. */
export const record = proxyLocalActivities<RecordActivities>({
  startToCloseTimeout: '20s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '5s' },
});

/** A dispatch, on the queue of the node that holds the agent's socket, or of any node for a hosted agent. */
export function dispatchOn(meshId: string | null, deadlineMs: number, summary: string) {
  return proxyActivities<NodeActivities>({
    taskQueue: meshId === null ? HOSTED_QUEUE : nodeQueue(meshId),
    scheduleToStartTimeout: '5s',
    startToCloseTimeout: deadlineMs + DEADLINE_MARGIN_MS,
    heartbeatTimeout: '10s',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { maximumAttempts: 1 },
    summary,
  });
}

/** Word to a node, past its queue of dispatches. A node that does not take it in time is gone, and its agents' sockets with it. */
export function controlOf(meshId: string) {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(meshId),
    scheduleToStartTimeout: '5s',
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 2 },
    summary: 'tell the agent',
  });
}

/** The watch over the agents. */
export const watch = proxyActivities<WatchActivities>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: '30s',
  retry: { maximumAttempts: 3 },
});

/** The record of what was told to a push-notification config; as `record`. */
export const deliveryRecord = proxyLocalActivities<DeliveryRecordActivities>({
  startToCloseTimeout: '20s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '5s' },
});

/** One attempt to tell it, which itself takes 10 s at most. What fails here is on our side, and does not count as an attempt. */
export function receiver(summary: string) {
  return proxyActivities<DeliveryActivities>({
    taskQueue: DELIVERY_QUEUE,
    startToCloseTimeout: '20s',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
    summary,
  });
}
