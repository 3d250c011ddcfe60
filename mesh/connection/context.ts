import type { Db } from '../../db/pool.js';
import type { Dispatches } from '../../messages/dispatch/dispatches.js';
import type { DispatchRunner } from '../../messages/dispatch/runner.js';
import type { Logger } from '../../runtime/logger.js';
import type { Semaphore } from '../../runtime/semaphore.js';
import type { SentDispatches } from '../connected/sent-dispatches.js';
import type { Registry } from './registry.js';
import type { StatusWriter } from './status-writer.js';
import type { MeshTimings } from './timings.js';
import type { AgentTools } from './tool-frames.js';

/** What the parts of a mesh node share. */
export interface MeshContext {
  db: Db;
  log: Logger;
  dispatches: Pick<Dispatches, 'agentJoined'>;
  runner: DispatchRunner;
  meshId: string;
  timings: MeshTimings;
  /** How long a lost agent's work is kept for it, in milliseconds. */
  resumeWindowMs: number;
  registry: Registry;
  sent: SentDispatches;
  tools: AgentTools;
  statuses: StatusWriter;
  /** Agents that are being entered into the database as connected. */
  registrations: Semaphore;
  /** Milliseconds that are left to agents once the node shuts down, when only those that resume are welcomed; null before. */
  drainLeftMs(): number | null;
}
