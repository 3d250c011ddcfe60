import { fileURLToPath } from 'node:url';
import { asyncLocalStorage } from '@temporalio/activity';
import {
  type ActivityInterceptorsFactory,
  DefaultLogger,
  NativeConnection,
  type NativeConnectionOptions,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { createDeliveryActivities, createDeliveryRecordActivities, type DeliveryDeps } from '../activities/deliver.js';
import { createControlActivities, createNodeActivities, type Dispatchers } from '../activities/node.js';
import { createRecordActivities } from '../activities/record.js';
import { createWatchActivities, type WatchDeps } from '../activities/watch.js';
import type { MessageCore } from '../messages/core.js';
import type { Dispatches } from '../messages/dispatch/dispatches.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import { AsyncContext } from '../runtime/async-context.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { controlQueue, DELIVERY_QUEUE, FLEET_QUEUE, HOSTED_QUEUE, nodeQueue } from '../workflows/definitions.js';

const RESTART_MS = 1_000;
/** Dispatches that one node carries at once; each waits, it does not compute. */
const DISPATCH_SLOTS = 2_000;
const HOSTED_SLOTS = 500;
const CONTROL_SLOTS = 50;
/** Push notifications on their way at once; one waits for 10 s at most. */
const DELIVERY_SLOTS = 200;
/** Well below the heartbeat timeout of 10 s, so that a pause of some seconds on either side costs nobody a message. */
const HEARTBEAT_THROTTLE_MS = 2_000;
/** Longer than any drain: activities end by themselves when their dispatches do. */
const DISPATCH_GRACE = '40s';
/** What the fleet worker does takes milliseconds, the watch over the agents aside, which begins again anywhere. */
const FLEET_GRACE = '5s';
const SHUTDOWN_FORCE = '60s';
/**
 * A step of a workflow that runs out of the SDK's 5 s takes the whole process with it ("async hook stack has become corrupted"), and after a
 * pause of the process each one under way has: so it never does. The SDK takes this option but does not list it.
 */
const PATIENT_SANDBOX = { isolateExecutionTimeout: '1 day' };

/**
 * Disables the storages in which the SDK keeps the contexts of activities and of its client as soon as an activity first awaits: from then
 * on `Context.current()` throws (runtime/async-context.ts says why).
 */
const contextAtOnce =
  ({ callContextStorage }: NativeConnection): ActivityInterceptorsFactory =>
  () => ({
    inbound: {
      execute: (input, next) => {
        try {
          return next(input);
        } finally {
          AsyncContext.of(asyncLocalStorage).release();
          AsyncContext.of(callContextStorage).release();
        }
      },
    },
  });

/** A worker that is made again when it fails. */
export interface RunningWorker {
  stop(): Promise<void>;
}

/** What every worker of this process shares. */
export interface WorkerDeps {
  connection: NativeConnection;
  namespace: string;
  log: Logger;
}

/** What the SDK warns of at every start of a worker that is for activities only, as the mesh's are. */
const EXPECTED = /^No workflows registered/;

/** Sends the Temporal SDK's own log to the platform's. Once per process. */
export function installTemporalRuntime(log: Logger): void {
  const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;
  Runtime.install({
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      log[EXPECTED.test(message) ? 'debug' : levels[level]](
        { component: 'temporal', ...(meta?.error instanceof Error && { err: meta.error.message }) },
        message,
      );
    }),
    shutdownSignals: [],
  });
}

/** Connects the workers of this process. @throws when the cluster cannot be reached */
export function connectWorkers(options: NativeConnectionOptions): Promise<NativeConnection> {
  return NativeConnection.connect(options);
}

/** Runs a worker until it is stopped. The SDK waits for a server that is away; what it gives up on is begun again here. */
async function keepRunning(
  workerDeps: WorkerDeps,
  options: Omit<WorkerOptions, 'connection' | 'namespace'>,
): Promise<RunningWorker> {
  const { connection, namespace, log } = workerDeps;
  const fields = { task_queue: options.taskQueue };
  let stopped = false;
  const make = () =>
    Worker.create({
      ...options,
      interceptors: { activity: [contextAtOnce(connection)] },
      shutdownForceTime: SHUTDOWN_FORCE,
      connection,
      namespace,
    });
  const makeAgain = async (): Promise<Worker | null> => {
    while (!stopped) {
      await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
      try {
        if (!stopped) return await make();
      } catch (error) {
        log.warn({ ...fields, err: errorMessage(error) }, 'a Temporal worker cannot start yet');
      }
    }
    return null;
  };
  let worker: Worker | null = await make();
  const loop = async () => {
    while (worker) {
      try {
        const running = worker.run();
        if (stopped) worker.shutdown();
        await running;
      } catch (error) {
        log.error({ ...fields, err: errorMessage(error) }, 'a Temporal worker failed; it is started again');
      }
      worker = await makeAgain();
    }
  };
  const done = loop();
  return {
    stop: async () => {
      stopped = true;
      if (worker?.getState() === 'RUNNING') worker.shutdown();
      await done;
    },
  };
}

/**
 * The worker role: all workflows, the record's local activities, the watch and what is told to receivers. `temporal` starts workflows over its connection, so that
 * their first task comes with the answer to the start.
 */
export async function runFleetWorker(
  workerDeps: WorkerDeps,
  deps: {
    core: MessageCore;
    dispatches: Dispatches;
    watch: WatchDeps;
    delivery: DeliveryDeps;
    temporal: TemporalLink;
  },
): Promise<RunningWorker> {
  const worker = await keepRunning(workerDeps, {
    taskQueue: FLEET_QUEUE,
    // After a crash, workflows that were cached in the dead process wait this long for it.
    stickyQueueScheduleToStartTimeout: '2s',
    shutdownGraceTime: FLEET_GRACE,
    ...PATIENT_SANDBOX,
    workflowBundle: { codePath: fileURLToPath(new URL('../workflows.bundle.js', import.meta.url)) },
    activities: {
      ...createRecordActivities(deps.core, deps.dispatches),
      ...createDeliveryRecordActivities(deps.delivery),
      ...createWatchActivities(deps.watch),
    },
    maxConcurrentLocalActivityExecutions: 50,
    maxConcurrentActivityTaskExecutions: CONTROL_SLOTS,
  });
  const deliveries = await keepRunning(workerDeps, {
    taskQueue: DELIVERY_QUEUE,
    activities: createDeliveryActivities(deps.delivery),
    shutdownGraceTime: FLEET_GRACE,
    maxConcurrentActivityTaskExecutions: DELIVERY_SLOTS,
  });
  deps.temporal.shareConnection(workerDeps.connection);
  return {
    stop: async () => {
      deps.temporal.shareConnection(null);
      await Promise.all([worker.stop(), deliveries.stop()]);
    },
  };
}

/** The mesh role's workers: this node's dispatches, its control queue, and its share of the hosted agents. */
export async function runNodeWorkers(
  workerDeps: WorkerDeps,
  meshId: string,
  dispatchers: Dispatchers,
): Promise<RunningWorker> {
  const dispatching = {
    activities: createNodeActivities(dispatchers),
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    shutdownGraceTime: DISPATCH_GRACE,
  };
  const workers = await Promise.all([
    keepRunning(workerDeps, {
      ...dispatching,
      taskQueue: nodeQueue(meshId),
      maxConcurrentActivityTaskExecutions: DISPATCH_SLOTS,
    }),
    keepRunning(workerDeps, {
      ...dispatching,
      taskQueue: HOSTED_QUEUE,
      maxConcurrentActivityTaskExecutions: HOSTED_SLOTS,
    }),
    keepRunning(workerDeps, {
      taskQueue: controlQueue(meshId),
      activities: createControlActivities(dispatchers),
      shutdownGraceTime: FLEET_GRACE,
      maxConcurrentActivityTaskExecutions: CONTROL_SLOTS,
    }),
  ]);
  return {
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
    },
  };
}
