import { fileURLToPath } from 'node:url';
import {
  DefaultLogger,
  NativeConnection,
  type NativeConnectionOptions,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { createControlActivities, createNodeActivities } from '../activities/node.js';
import { createRecordActivities } from '../activities/record.js';
import { createWatchActivities, type WatchDeps } from '../activities/watch.js';
import { LIMITS } from '../contracts/limits.js';
import type { Dispatcher } from '../mesh/dispatcher.js';
import type { MessageCore } from '../messages/core.js';
import type { Dispatches } from '../messages/dispatches.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { controlQueue, FLEET_QUEUE, HOSTED_QUEUE, nodeQueue } from '../workflows/definitions.js';

const RESTART_MS = 1_000;
/** Dispatches that one node carries at once; each waits, it does not compute. */
const DISPATCH_SLOTS = 2_000;
const HOSTED_SLOTS = 500;
const CONTROL_SLOTS = 50;

/** A worker that is made again when it fails. */
export interface RunningWorker {
  stop(): Promise<void>;
}

/** What every worker of this process shares. */
export interface WorkerGround {
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
  ground: WorkerGround,
  options: Omit<WorkerOptions, 'connection' | 'namespace'>,
): Promise<RunningWorker> {
  let stopped = false;
  const make = () =>
    Worker.create({ ...options, connection: ground.connection, namespace: ground.namespace, shutdownGraceTime: '5s' });
  let worker = await make();
  const loop = async () => {
    while (!stopped) {
      try {
        await worker.run();
      } catch (error) {
        ground.log.error(
          { err: errorMessage(error), task_queue: options.taskQueue },
          'a Temporal worker failed; it is started again',
        );
      }
      while (!stopped) {
        await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
        try {
          if (!stopped) worker = await make();
          break;
        } catch (error) {
          ground.log.warn(
            { err: errorMessage(error), task_queue: options.taskQueue },
            'a Temporal worker cannot start yet',
          );
        }
      }
    }
  };
  const done = loop();
  return {
    stop: async () => {
      stopped = true;
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await done;
    },
  };
}

/** The worker role: all workflows, the record's local activities and the watch. */
export function runFleetWorker(
  ground: WorkerGround,
  deps: { core: MessageCore; dispatches: Dispatches; watch: WatchDeps },
) {
  return keepRunning(ground, {
    taskQueue: FLEET_QUEUE,
    workflowBundle: { codePath: fileURLToPath(new URL('../workflows.bundle.js', import.meta.url)) },
    activities: { ...createRecordActivities(deps.core, deps.dispatches), ...createWatchActivities(deps.watch) },
    maxConcurrentLocalActivityExecutions: 50,
    maxConcurrentActivityTaskExecutions: CONTROL_SLOTS,
  });
}

/** The mesh role's workers: this node's dispatches, its control queue, and its share of the hosted agents. */
export async function runNodeWorkers(
  ground: WorkerGround,
  meshId: string,
  dispatchers: { connected: Dispatcher; hosted: Dispatcher },
): Promise<RunningWorker> {
  const activities = (dispatcher: Dispatcher) => ({ activities: createNodeActivities(dispatcher) });
  const workers = await Promise.all([
    keepRunning(ground, {
      taskQueue: nodeQueue(meshId),
      ...activities(dispatchers.connected),
      maxConcurrentActivityTaskExecutions: DISPATCH_SLOTS,
      maxHeartbeatThrottleInterval: LIMITS.blockedMsMax,
    }),
    keepRunning(ground, {
      taskQueue: HOSTED_QUEUE,
      ...activities(dispatchers.hosted),
      maxConcurrentActivityTaskExecutions: HOSTED_SLOTS,
    }),
    keepRunning(ground, {
      taskQueue: controlQueue(meshId),
      activities: createControlActivities([dispatchers.connected, dispatchers.hosted]),
      maxConcurrentActivityTaskExecutions: CONTROL_SLOTS,
    }),
  ]);
  return {
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
    },
  };
}
