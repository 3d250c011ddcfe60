import type { LogCounts } from '../../runtime/logger.js';
import { createHealth } from '../health.js';
import type { RunOptions } from '../roles/roles.js';
import type { Services } from '../services.js';
import { MetricsServer } from './metrics-server.js';
import type { MetricSources } from './platform-metrics.js';
import { createQueueDepths } from './queue-depths.js';

/** What is known of the process from its first moment. */
export interface ProcessFacts {
  logCounts: LogCounts;
  /** Where the Temporal SDK serves its metrics. */
  temporalAddress: string;
  /** Aborted when the process stops. */
  stopping: AbortSignal;
}

/** The metrics while they are served. */
export interface RunningMetrics {
  /** Filled by what starts later. */
  sources: MetricSources;
  /** Null when the port is taken. */
  url: string | null;
  stop(): Promise<void>;
}

/** Serves the metrics. Started before the roles and stopped after them, so that they tell of a start and of a stop too. */
export async function startMetrics(
  services: Services,
  { roles }: Pick<RunOptions, 'roles'>,
  { logCounts, temporalAddress, stopping }: ProcessFacts,
): Promise<RunningMetrics> {
  const {
    config,
    db,
    temporal: link,
    temporalStart,
    bus,
    log,
    version,
    messages,
    deliveryCounts,
    spanCounts,
  } = services;
  const redis = config.REDIS_URL ? () => bus.isReachable() : null;
  const temporal = async () => temporalStart.isDone && link.isReachable();
  const sources: MetricSources = {
    version,
    logCounts,
    health: createHealth({ db, temporal, version, redis, clocks: config.FLEET_CLOCKS, stopping }),
    database: () => db.counts(),
    verdicts: messages.verdicts,
    watched: 0,
    droppedNodeMessages: { forged: 0, late: 0 },
    deliveries: deliveryCounts,
    spans: spanCounts,
    http: [],
    mesh: null,
    queues: roles.has('worker') ? createQueueDepths(db, config.FLEET_CLOCKS) : null,
  };
  const server = new MetricsServer({ config, log, sources, temporalAddress });
  return { sources, url: await server.listen(), stop: () => server.stop() };
}
