import type { Db } from '../../db/pool.js';
import type { TenantGuards } from '../../policy/guards/guarded-content.js';
import type { PolicyEngine } from '../../policy/policy-engine.js';
import type { Logger } from '../../runtime/logger.js';
import type { Dispatches } from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import type { ProposePlan } from './plan-proposals.js';

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
