import pLimit from 'p-limit';
import { AgentHealth } from '../connected/agent-health.js';
import { InflightTable } from '../connected/inflight-table.js';
import type { MeshContext } from '../connection/context.js';
import { Registry } from '../connection/registry.js';
import { StatusWriter } from '../connection/status-writer.js';
import { DEFAULT_TIMINGS } from '../connection/timings.js';
import { AgentTools } from '../connection/tool-frames.js';
import { Reservations } from '../reservations.js';
import type { MeshServerOptions } from './options.js';

/** Agents that are entered into the database as connected at once; the rest of its connections is left to messages. */
const REGISTRATIONS_AT_ONCE = 8;

/** What the parts need to know of the node's end. */
export interface Life {
  closing: AbortSignal;
  drainLeftMs(): number | null;
  /** Called when an agent has nothing in flight any more. */
  onIdle(): void;
}

/** Makes the parts of a mesh node and puts them together. */
export function buildContext(options: MeshServerOptions, life: Life): MeshContext {
  const { db, log, bus, dispatches, meshId, config } = options;
  const registry = new Registry();
  const around = {
    dispatches,
    bus,
    log,
    meshId,
    health: new AgentHealth(db, log),
    closing: life.closing,
    send: (agentKey: string, frame: string) => {
      const connection = registry.get(agentKey);
      return connection?.isLive === true && connection.socket.send(frame);
    },
    fenced: (agentKey: string) => registry.fenced(agentKey),
  };
  const onAgentIdle = (agentKey: string): void => {
    registry.get(agentKey)?.becameIdle();
    life.onIdle();
  };
  const inflight = new InflightTable(around, onAgentIdle);
  options.tools.pending.onAgentIdle(onAgentIdle);
  const timings = { ...DEFAULT_TIMINGS, ...options.timings };
  const statuses = new StatusWriter(db, log, (tenantId, agent) => dispatches.agentJoined(tenantId, agent));
  const reservations = options.reservations ?? new Reservations();
  return {
    db,
    log,
    dispatches,
    meshId,
    timings,
    resumeWindowMs: config.RESUME_WINDOW_MS,
    registry,
    reservations,
    inflight,
    tools: new AgentTools({ registry, inflight, calls: options.tools }),
    statuses,
    registrationLimit: pLimit(REGISTRATIONS_AT_ONCE),
    drainLeftMs: life.drainLeftMs,
  };
}
