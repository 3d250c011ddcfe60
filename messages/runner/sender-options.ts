import type { AgentRef } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import type { TenantGuards } from '../../policy/guards/guarded-content.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import type { Logger } from '../../runtime/logger.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { DispatchEnd, Dispatches, DispatchRef, NextDispatch, OpenDispatch } from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import type { ProposePlan } from './plan-proposals.js';

/** Takes the next message of an agent in the transaction that ends one. */
export interface Taking {
  /** An agent may have got room: it gets what waits for it. Never throws. */
  fill(agent: AgentRef): void;
  /** What that transaction may open; undefined where the agent is to get nothing more now. */
  offer(ended: OpenDispatch): NextDispatch | undefined;
  /** To be called after each end. @param end null where nothing was written, or that is not known */
  settle(offer: NextDispatch | undefined, ended: OpenDispatch, end: DispatchEnd | null): void;
}

/** What all dispatches of a process share. */
export interface SenderOptions {
  dispatches: Dispatches;
  bus: Pick<ChunkBus, 'publish'>;
  guards: TenantGuards & Pick<PolicyEngine, 'isUnconcerned'>;
  db: Db;
  log: Logger;
  /** Absent where agents may not propose plans in their results. */
  proposePlan?: ProposePlan;
  /** This node; new at every boot. */
  meshId: string;
  /** Nothing of a dispatch was sent, and it is released: its message goes on. Never throws. */
  released(ref: DispatchRef & SessionRef): void;
}
