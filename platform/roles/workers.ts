import { fileURLToPath } from 'node:url';
import { createDeliveryActivities, createDeliveryRecordActivities } from '../../activities/deliver.js';
import { createIngestActivities, createIngestRecordActivities } from '../../activities/ingest.js';
import { createPlanActivities, type PlanActivityDeps } from '../../activities/plan.js';
import { createRecordActivities } from '../../activities/record.js';
import { createWatchActivities, type WatchDeps } from '../../activities/watch.js';
import { DELIVERY_QUEUE, FLEET_QUEUE, KNOWLEDGE_QUEUE } from '../../contracts/workflows.js';
import type { AttemptDeps } from '../../deliveries/attempt-delivery.js';
import { SLOTS_MAX } from '../../deliveries/queue.js';
import type { Services } from '../services.js';
import { keepRunning, type WorkerDeps } from './running-worker.js';
import { tenantShares } from './tenant-shares.js';

/** Looks at agents, and what else is not a local activity. */
const ACTIVITY_SLOTS = 50;
/**
 * Workflow tasks, and local activities, at once. A workflow keeps its task as long as a local activity of it runs or waits for its tenant's turn
 * at the database; those of one tenant have at most a quarter of the slots.
 */
const STEP_SLOTS = 200;
/** Slices of jobs; most of them wait for their tenant's turn (knowledge/ingest/job-runner.ts). */
const KNOWLEDGE_SLOTS = 100;
/**
 * Workflows that are kept in memory between their tasks, a quarter of a megabyte each. Thousands may wait for humans, for days: one that is
 * not here is replayed from its short history when it wakes.
 */
const CACHED_WORKFLOWS = 500;
/** Far below the heartbeat timeout of 10 s, so that a pause of several seconds on either side does not fail a message. */
const HEARTBEAT_THROTTLE_MS = 2_000;
/**
 * Raises the SDK's 5 s limit for a workflow task to a day. Exceeding it crashes the process ("async hook stack has become corrupted"), and after a
 * pause of the process every running task exceeds it. The SDK accepts this option, but its types do not list it.
 */
const SANDBOX_LIMIT = { isolateExecutionTimeout: '1 day' };

/** The room for workflow tasks and local activities, and its division between tenants. */
export function stepSlots(slots = STEP_SLOTS) {
  return {
    maxConcurrentWorkflowTaskExecutions: slots,
    maxConcurrentLocalActivityExecutions: slots,
    interceptors: { activity: [tenantShares(Math.ceil(slots / 4))] },
  };
}

/**
 * The worker role: all workflows, the local activities that write to the database, the agent watch and deliveries. `temporal` starts
 * workflows over this worker's connection, so that the answer to the start includes their first task.
 */
export async function runFleetWorker(
  workerDeps: WorkerDeps,
  deps: Pick<Services, 'core' | 'temporal'> & {
    watch: WatchDeps;
    delivery: AttemptDeps;
    plans: PlanActivityDeps;
  },
) {
  const worker = await keepRunning(workerDeps, {
    taskQueue: FLEET_QUEUE,
    // After a crash, workflows that the dead process had cached wait this long for it.
    stickyQueueScheduleToStartTimeout: '2s',
    ...SANDBOX_LIMIT,
    maxCachedWorkflows: CACHED_WORKFLOWS,
    workflowBundle: { codePath: fileURLToPath(new URL('../../workflows.bundle.js', import.meta.url)) },
    activities: {
      ...createRecordActivities(deps.core),
      ...createDeliveryRecordActivities(deps.delivery),
      ...createPlanActivities(deps.plans),
      ...createWatchActivities(deps.watch),
      ...createIngestRecordActivities(deps.core.db),
    },
    ...stepSlots(),
    maxConcurrentActivityTaskExecutions: ACTIVITY_SLOTS,
  });
  const deliveries = await keepRunning(workerDeps, {
    taskQueue: DELIVERY_QUEUE,
    activities: createDeliveryActivities(deps.delivery),
    // Every delivery that has a slot makes its attempts at once, also where one process makes them all.
    maxConcurrentActivityTaskExecutions: SLOTS_MAX,
  });
  await workerDeps.start.run(async (connection) => deps.temporal.shareConnection(connection));
  return {
    stop: async (): Promise<void> => {
      deps.temporal.shareConnection(null);
      await Promise.all([worker.stop(), deliveries.stop()]);
    },
  };
}

/** The worker of the knowledge role: reads and embeds documents. */
export function runKnowledgeWorker(workerDeps: WorkerDeps, { jobRunner }: Pick<Services, 'jobRunner'>) {
  return keepRunning(workerDeps, {
    taskQueue: KNOWLEDGE_QUEUE,
    activities: createIngestActivities(jobRunner),
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    maxConcurrentActivityTaskExecutions: KNOWLEDGE_SLOTS,
  });
}
