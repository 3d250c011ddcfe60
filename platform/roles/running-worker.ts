import { setTimeout as delay } from 'node:timers/promises';
import { asyncLocalStorage } from '@temporalio/activity';
import type { DataConverter } from '@temporalio/common';
import {
  type ActivityInterceptorsFactory,
  type NativeConnection,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { AsyncContext } from '../../runtime/async-context.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { TemporalStart } from '../temporal-start.js';
import { hideFailures } from './hidden-failures.js';

const RESTART_MS = 1_000;
/** Other activities take milliseconds, except push notifications and the agent watch, which any worker can restart. */
const GRACE = '5s';
const SHUTDOWN_FORCE = '60s';

/**
 * Disables the storages in which the SDK keeps the contexts of activities and of its client as soon as an activity first awaits: from then
 * on `Context.current()` throws (runtime/async-context.ts says why).
 */
const releaseContextEarly =
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

/** Shared dependencies of all workers of this process. */
export interface WorkerDeps {
  start: TemporalStart;
  namespace: string;
  dataConverter: DataConverter;
  /** Failures reach Temporal without their texts. */
  hidesFailures: boolean;
  log: Logger;
}

/**
 * Runs a worker until it is stopped; while Temporal is unavailable, it begins later. The SDK reconnects by itself; a worker that it gives up
 * on is recreated here.
 */
export async function keepRunning(workerDeps: WorkerDeps, options: Omit<WorkerOptions, 'connection' | 'namespace'>) {
  const { start, namespace, dataConverter, hidesFailures, log } = workerDeps;
  const fields = { task_queue: options.taskQueue };
  let stopped = false;
  const create = (connection: NativeConnection) =>
    Worker.create({
      shutdownGraceTime: GRACE,
      ...options,
      dataConverter,
      interceptors: {
        activity: [
          ...(hidesFailures ? [hideFailures(log)] : []),
          releaseContextEarly(connection),
          ...(options.interceptors?.activity ?? []),
        ],
      },
      shutdownForceTime: SHUTDOWN_FORCE,
      connection,
      namespace,
    });
  const recreate = async (connection: NativeConnection): Promise<Worker | undefined> => {
    while (!stopped) {
      await delay(RESTART_MS);
      try {
        await start.check();
        if (!stopped) return await create(connection);
      } catch (error) {
        log.warn({ ...fields, err: errorMessage(error) }, 'a Temporal worker could not start; retrying');
      }
    }
  };
  let worker: Worker | undefined;
  const loop = async (connection: NativeConnection) => {
    for (; worker; worker = await recreate(connection)) {
      try {
        const running = worker.run();
        if (stopped) worker.shutdown();
        await running;
      } catch (error) {
        log.error({ ...fields, err: errorMessage(error) }, 'a Temporal worker failed and is restarted');
      }
    }
  };
  let done: Promise<void> | undefined;
  await start.run(async (connection) => {
    if (stopped) return;
    worker = await create(connection);
    done = loop(connection);
  });
  return {
    stop: async (): Promise<void> => {
      stopped = true;
      await start.stop();
      if (worker?.getState() === 'RUNNING') worker.shutdown();
      await done;
    },
  };
}
