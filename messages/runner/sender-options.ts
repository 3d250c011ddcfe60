import type { AgentRef } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import type { TenantGuards } from '../../policy/guards/guarded-content.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import type { Logger } from '../../runtime/logger.js';
import type { DispatchEnd, Dispatches, NextDispatch, OpenDispatch } from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import type { ProposePlan } from './plan-proposals.js';

/**
 * Takes the next message of an agent in the transaction that ends one. Of each dispatch that was sent, in this order: `offerNext`, its end on the record,
 * `sendNext`, it runs here no more, `Taker.ended`.
 */
export interface Taking {
  /** An agent may have got room: it gets what waits for it. Never throws. */
  fill(agent: AgentRef): void;
  /** What that transaction may open; undefined where the agent is to get nothing more now. */
  offerNext(ended: OpenDispatch): NextDispatch | undefined;
  /** Sends what was opened, or has the agent get its next message otherwise. To be called after each `offerNext`. @param end null where nothing was written, or that is not known */
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
