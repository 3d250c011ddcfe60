import type { AgentRef } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import type { TenantGuards } from '../../policy/guards/guarded-content.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import type { Logger } from '../../runtime/logger.js';
import type { DispatchEnd, Dispatches, NextDispatch, OpenDispatch } from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import type { ProposePlan } from './plan-proposals.js';

/**
 * Takes the next message of an agent in the transaction that ends one. The order for each dispatch that was sent: `offerNext`, the end is recorded, `sendNext`,
 * the dispatch is removed from those that run here, `Taker.ended`.
 */
export interface Taking {
  /** An agent may have got room: takes queued messages for it. Never throws. */
  fill(agent: AgentRef): void;
  /** The dispatch that the transaction may open; undefined if the agent must get nothing more now. */
  offerNext(ended: OpenDispatch): NextDispatch | undefined;
  /** Sends the dispatch that was opened, or fills the agent. To be called after each `offerNext`. @param end null: not written, or unknown */
  sendNext(offer: NextDispatch | undefined, ended: OpenDispatch, end: DispatchEnd | null): void;
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
}
