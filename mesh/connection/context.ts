import type { LimitFunction } from 'p-limit';
import type { Db } from '../../db/pool.js';
import type { Dispatches } from '../../messages/dispatch/dispatches.js';
import type { Logger } from '../../runtime/logger.js';
import type { InflightTable } from '../connected/inflight-table.js';
import type { Reservations } from '../reservations.js';
import type { Registry } from './registry.js';
import type { StatusWriter } from './status-writer.js';
import type { MeshTimings } from './timings.js';
import type { AgentTools } from './tool-frames.js';

/** What the parts of a mesh node share. */
export interface MeshContext {
  db: Db;
  log: Logger;
  dispatches: Dispatches;
  meshId: string;
  timings: MeshTimings;
  /** How long a lost agent's work is kept for it, in milliseconds. */
  resumeWindowMs: number;
  registry: Registry;
  reservations: Reservations;
  inflight: InflightTable;
  tools: AgentTools;
  statuses: StatusWriter;
  /** Agents that are being entered into the database as connected. */
  registrationLimit: LimitFunction;
  /** Milliseconds that are left to agents once the node shuts down, when only those that resume are welcomed; null before. */
  drainLeftMs(): number | null;
}
