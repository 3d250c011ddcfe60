import {
  ActivityCancellationType,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { DeliveryActivities, DeliveryRecordActivities } from '../activities/deliver.js';
import type { IngestActivities, IngestRecordActivities } from '../activities/ingest.js';
import type { PlanActivities } from '../activities/plan.js';
import type { RecordActivities } from '../activities/record.js';
import type { WatchActivities } from '../activities/watch.js';
import { DELIVERY_QUEUE, KNOWLEDGE_QUEUE } from '../contracts/workflows.js';

/**
 * Transactions in Postgres. Each is idempotent and takes milliseconds; while the database is unavailable they are retried without limit, within
 * the workflow task, so that an outage of hours does not fill the history. A refusal because the tenant is busy is retried later than the
 * threshold, by a timer, so that the workflow gives up its slot meanwhile (platform/roles/tenant-shares.ts).
 */
const TRANSACTION: LocalActivityOptions = {
  startToCloseTimeout: '20s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '2s' },
  localRetryThreshold: '2s',
};

/** Transactions on messages and sessions. */
export const record = proxyLocalActivities<RecordActivities>(TRANSACTION);

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
export function receiver(summary: string) {
  return proxyActivities<DeliveryActivities>({
    taskQueue: DELIVERY_QUEUE,
    startToCloseTimeout: '20s',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
    summary,
  });
}

/** Transactions on jobs of knowledge bases. */
export const ingestRecord = proxyLocalActivities<IngestRecordActivities>(TRANSACTION);

/**
 * Reads and embeds documents. A slice waits for its tenant's turn. If it is cut off, it runs again and continues after the documents that are
 * written. The attempts of a document are counted in its row.
 */
export const documents = proxyActivities<IngestActivities>({
  taskQueue: KNOWLEDGE_QUEUE,
  startToCloseTimeout: '2h',
  heartbeatTimeout: '20s',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
  summary: 'take documents in',
});
