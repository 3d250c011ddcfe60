import type { AgentRef } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import type { Dispatches } from '../../messages/dispatch/dispatches.js';
import type { DispatchRunner } from '../../messages/runner/runner.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import type { Clocks } from '../../runtime/clocks.js';
import type { Logger } from '../../runtime/logger.js';
import type { SentDispatches } from '../connected/connected-transport.js';
import type { AgentTools } from '../frames/tool-frames.js';
import type { Connection, Registry, TransitionCounts } from './connection.js';
import type { AuthenticatedAgent } from './connection-rows.js';
import type { StatusWriter } from './status-writer.js';

/** What the platform gives to a mesh node. */
export interface NodeDeps {
  db: Db;
  log: Logger;
  dispatches: Pick<Dispatches, 'deadlineLeft'>;
  /** Sends queued messages to an agent that may have got room. Never throws. */
  fill(agent: AgentRef): void;
  /** Runs the dispatches; its `meshId` names this node. */
  runner: DispatchRunner;
  /** Decide about what agents change of their registrations as they connect. */
  policies: PolicyEngine;
  clocks: Clocks;
}

/** What the parts of a mesh node share. */
export interface MeshContext extends NodeDeps {
  meshId: string;
  /** How long the dispatches of a lost agent wait for it to resume, in milliseconds. */
  resumeWindowMs: number;
  /** This node's own address; undefined when it has none. */
  nodeUrl(): string | undefined;
  registry: Registry;
  sent: SentDispatches;
  transitions: TransitionCounts;
  tools: AgentTools;
  statuses: StatusWriter;
  /** Writes an agent's connection to the database in the turn of its tenant. @throws PlatformError RATE_LIMITED when too many wait */
  register<T>(tenantId: string, work: () => Promise<T>): Promise<T>;
  /** Checks that a token may hold the socket of an instance. @throws PlatformError as `authorizeAgent` */
  authorize(token: string, instanceId: string): Promise<AuthenticatedAgent>;
  /** Milliseconds left of the grace while the node shuts down, when it takes only agents that resume; null before. */
  drainLeftMs(): number | null;
  /** Called when an agent has lost its socket. */
  suspended(connection: Connection): void;
}
