import type { Db } from '../db/pool.js';
import type { EnforceDeps } from '../policy/enforce.js';

/** The dependencies of the operations on plans. */
export interface PlanDeps extends EnforceDeps {
  db: Db;
  /** How long somebody may take to approve a plan, in milliseconds. */
  approvalMs: number;
  /** Called after a change that the workflow of a plan is to see. */
  wakesExpected: () => void;
}
