import { DefaultLogger, type MetricsExporterConfig, Runtime } from '@temporalio/worker';
import type { Logger } from '../../runtime/logger.js';
import { temporalMetricsOptions } from '../metrics/temporal-metrics.js';

/** The SDK's warning at each start of an activity-only worker, such as those of the mesh. */
const EXPECTED_WARNING = /^No workflows registered/;

/** Another program may take the port that is to serve the SDK's metrics before the SDK does. */
const INSTALL_ATTEMPTS = 5;

/**
 * Forwards the log of the Temporal SDK to the platform's log, and has it serve its metrics on this machine. Called once per process.
 * @returns the address of the metrics
 */
export async function installTemporalRuntime(log: Logger): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const metrics = await temporalMetricsOptions();
    try {
      installRuntime(log, metrics);
      return metrics.prometheus.bindAddress;
    } catch (error) {
      if (attempt === INSTALL_ATTEMPTS) throw error;
    }
  }
}

function installRuntime(log: Logger, metrics: MetricsExporterConfig): void {
  const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;
  Runtime.install({
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      log[EXPECTED_WARNING.test(message) ? 'debug' : levels[level]](
        {
          component: 'temporal',
          workflow_id: meta?.workflowId,
          run_id: meta?.runId,
          task_queue: meta?.taskQueue,
          activity_type: meta?.activityType,
          ...(meta?.error instanceof Error && { err: meta.error.message }),
        },
        message,
      );
    }),
    telemetryOptions: { metrics },
    shutdownSignals: [],
  });
}
