import type { Db } from '../../db/pool.js';
import type { TenantGuards } from '../../policy/guards/guarded-content.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import type { Logger } from '../../runtime/logger.js';
import type { DispatchEnd, Dispatches, NextDispatch, OpenDispatch } from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import type { ProposePlan } from './plan-proposals.js';

/** Takes the next message of an agent in the transaction that ends one. */
export interface Taking {
  /** What that transaction may open; undefined where the agent is to get nothing more now. */
  offer(ended: OpenDispatch): NextDispatch | undefined;
  /** To be called once for each offer. @param end null where nothing was written, or that is not known */
  settle(offer: NextDispatch, ended: OpenDispatch, end: DispatchEnd | null): void;
}

/** What all dispatches of a process share. */
export interface SenderOptions {
  dispatches: Dispatches;
  bus: Pick<ChunkBus, 'publish'>;
  guards: TenantGuards & Pick<PolicyEngine, 'unconcerned'>;
  db: Db;
  log: Logger;
  /** Absent where agents may not propose plans in their results. */
  proposePlan?: ProposePlan;
  /** This node; new at every boot. */
  meshId: string;
}
