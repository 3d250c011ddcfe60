import {
  ActivityCancellationType,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { DeliveryActivities, DeliveryRecordActivities } from '../activities/deliver.js';
import type { IngestActivities, IngestRecordActivities } from '../activities/ingest.js';
import type { ControlActivities, NodeActivities } from '../activities/node.js';
import type { PlanActivities } from '../activities/plan.js';
import type { RecordActivities } from '../activities/record.js';
import type { WatchActivities } from '../activities/watch.js';
import { controlQueue, DELIVERY_QUEUE, HOSTED_QUEUE, KNOWLEDGE_QUEUE, nodeQueue } from './definitions.js';

/** Added to the dispatch's own deadline, so that the node, whose clock decides, ends the dispatch first. */
const DEADLINE_MARGIN_MS = 30_000;

/**
 * Transactions in Postgres. Each is idempotent and takes milliseconds; while the database is unavailable they are retried without limit, within the
 * workflow task, so that an outage of hours does not fill the history. What is refused because its tenant is busy is retried later than the
 * threshold, by a timer, so that its workflow leaves its slot (platform/roles/tenant-shares.ts).
 */
export const TRANSACTION: LocalActivityOptions = {
  startToCloseTimeout: '20s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '2s' },
  localRetryThreshold: '2s',
};

/** Transactions on messages, dispatches and sessions. */
export const record = proxyLocalActivities<RecordActivities>(TRANSACTION);

/**
 * How long a dispatch waits for a node to take it. The node of a socket is dead after that. Hosted agents are called by any node: where none takes
 * the dispatch, all are busy, and to route it again would only bring it behind others, until the message's time is over.
 */
const TAKEN_WITHIN = { ofNode: '5s', ofAnyNode: '30s' } as const;

/** Runs a dispatch on the node that holds the agent's socket, or on any mesh node for a hosted agent. */
export function dispatchOn(meshId: string | null, deadlineMs: number, summary: string) {
  return proxyActivities<NodeActivities>({
    taskQueue: meshId === null ? HOSTED_QUEUE : nodeQueue(meshId),
    scheduleToStartTimeout: meshId === null ? TAKEN_WITHIN.ofAnyNode : TAKEN_WITHIN.ofNode,
    startToCloseTimeout: deadlineMs + DEADLINE_MARGIN_MS,
    heartbeatTimeout: '10s',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { maximumAttempts: 1 },
    summary,
  });
}

/** Cancels dispatches on a node. A node that does not take the task in time is dead, and so are its agents' sockets. */
export function controlOf(meshId: string) {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(meshId),
    scheduleToStartTimeout: '5s',
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 2 },
    summary: 'cancel the dispatch',
  });
}

/** Transactions on plans. */
export const planRecord = proxyLocalActivities<PlanActivities>(TRANSACTION);

/** The agent watch. */
export const watch = proxyActivities<WatchActivities>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: '30s',
  retry: { maximumAttempts: 3 },
});

/** Transactions on deliveries. */
export const deliveryRecord = proxyLocalActivities<DeliveryRecordActivities>(TRANSACTION);

/** One delivery attempt, which takes at most 10 s. The activity fails only through errors of the platform, which do not count as attempts. */
export function receiverOf<Activities extends object>(summary: string) {
  return proxyActivities<Activities>({
    taskQueue: DELIVERY_QUEUE,
    startToCloseTimeout: '20s',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
    summary,
  });
}

export const receiver = (summary: string) => receiverOf<DeliveryActivities>(summary);

/** Transactions on jobs of knowledge bases. */
export const ingestRecord = proxyLocalActivities<IngestRecordActivities>(TRANSACTION);

/**
 * Reads and embeds documents. A slice waits for its tenant's turn; one that is cut off is run again and goes on behind what is written. How
 * often a document is tried is counted in its row.
 */
export const documents = proxyActivities<IngestActivities>({
  taskQueue: KNOWLEDGE_QUEUE,
  startToCloseTimeout: '2h',
  heartbeatTimeout: '20s',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
  summary: 'take documents in',
});
