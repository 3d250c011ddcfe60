import { settleTotals } from '../../agents/agent-connections.js';
import { createAlertRelay } from '../../alerts/alert-relay.js';
import { createAuditRetention } from '../../audit/audit-retention.js';
import { createMaintenance } from '../../db/maintenance.js';
import { Retention } from '../../db/retention.js';
import { endsOfWork } from '../../erasure/end-work.js';
import { createEraser } from '../../erasure/eraser.js';
import { createJobStarter, createKnowledgePurge } from '../../knowledge/ingest/job-starter.js';
import { sessionDeps } from '../../messages/cancel.js';
import { QueueWatch } from '../../messages/supervise/queue-watch.js';
import { Sweeper } from '../../messages/supervise/sweeper.js';
import { WaitingWatch } from '../../messages/supervise/waiting-watch.js';
import { createWorkflowErasure } from '../../messages/supervise/workflow-erasure.js';
import { createSessionExpiry } from '../../sessions/session-expiry.js';
import { createEventSequencer } from '../../telemetry/event-sequencer.js';
import { createUsageRollUp, rollUpAll } from '../../usage/roll-up.js';
import type { Infrastructure } from '../infrastructure.js';
import type { Services } from '../services.js';
import type { StopList } from '../stop-list.js';
import { createTraceExport } from '../trace-export.js';
import type { WorkerDeps } from './running-worker.js';
import { runFleetWorker } from './workers.js';

function createRetention({ config, db, log }: Services, { databaseUrl }: Infrastructure): Retention {
  const days = { messages: config.MESSAGE_RETENTION_DAYS, events: config.EVENT_RETENTION_DAYS };
  return new Retention({
    url: databaseUrl,
    db,
    log,
    days,
    settleTotals: (before) => settleTotals(db, before),
    rollUpUsage: () => rollUpAll(db),
  });
}

/**
 * Starts what the worker role does: workflows with their activities, and the loops over the record.
 * @param baseUrl of the API, which links name
 * @returns `startAlerts` starts the alert relay, for when the address of the API is known
 */
export async function startWorkerRole(
  services: Services,
  infrastructure: Infrastructure,
  workerDeps: WorkerDeps,
  baseUrl: () => string,
  stops: StopList,
): Promise<{ startAlerts: () => void }> {
  const { core, db, outbound, secrets, log, temporal, channelClients, deliveryStarter, eventFeed } = services;
  const { planStarter, config, version, spanCounts, catchUpUsage } = services;
  const plans = { accept: services.messages, stepStarted: () => planStarter.expect() };
  const watch = { db, outbound, log };
  const delivery = { db, clients: channelClients, secrets, log, counts: services.deliveryCounts };
  const deliveriesWritten = () => deliveryStarter.expect();
  const { slackApiUrl } = channelClients;
  const worker = await runFleetWorker(workerDeps, { core, watch, delivery, plans, temporal });
  stops.add(() => worker.stop());
  await workerDeps.start.run(() => temporal.ensureAgentWatch());
  const alertRelay = createAlertRelay({ db, secrets, log, slackApiUrl, baseUrl, deliveriesWritten });
  const positioned = () => {
    eventFeed.wake();
    alertRelay.wake();
  };
  const loops = [
    new Sweeper(core, temporal),
    new WaitingWatch(core, temporal),
    new QueueWatch(core),
    createEventSequencer(db, log, positioned),
    createUsageRollUp(db, log),
    deliveryStarter,
    planStarter,
    createSessionExpiry(sessionDeps(core)),
    createMaintenance(db, log),
    createRetention(services, infrastructure),
    createJobStarter(db, temporal, log),
    createKnowledgePurge(db, config.KNOWLEDGE_JOB_RETENTION_DAYS, log),
    createAuditRetention(db, config.AUDIT_RETENTION_DAYS, log),
    createTraceExport({ config, db, log, version, counts: spanCounts }),
    createEraser({
      db,
      log,
      bus: core.bus,
      workflows: createWorkflowErasure(temporal),
      catchUpUsage,
      everyMs: config.FLEET_CLOCKS.eraseMs,
      ...endsOfWork(core),
    }),
  ];
  for (const loop of loops) {
    if (!loop) continue;
    loop.start();
    stops.add(() => loop.stop());
  }
  stops.add(() => alertRelay.stop());
  return { startAlerts: () => alertRelay.start() };
}
