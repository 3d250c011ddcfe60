import type { Db } from '../db/pool.js';
import type { MessageRef } from '../messages/core.js';
import type { ChunkBus } from '../messages/stream/bus.js';
import type { WorkflowErasure } from '../messages/supervise/workflow-erasure.js';
import type { Logger } from '../runtime/logger.js';
import type { SessionRef } from '../sessions/session-deps.js';

/** What erasures need. */
export interface EraserDeps {
  db: Db;
  log: Pick<Logger, 'info' | 'warn'>;
  bus: Pick<ChunkBus, 'keysOf' | 'forget'>;
  workflows: WorkflowErasure;
  /** Adds up the usage of everything that was committed before. Gives whether all of it is in the sums. */
  catchUpUsage(): Promise<boolean>;
  /** Cancels a message; nothing for one that is over. */
  cancel(ref: MessageRef): Promise<void>;
  /** Ends a session and cancels what is in flight in it; nothing for one that has ended. */
  endSession(ref: SessionRef): Promise<void>;
  /** How long events wait for alert rules, after they were written and the erasure was asked for; ten minutes by default. */
  readWithinMs?: number;
  /** Between two looks for erasures, and at one that waits for what is under way; two seconds by default. */
  everyMs?: number;
  /** How soon after a crash another process continues; 60 s by default. */
  leaseSeconds?: number;
  /** How long after its deletion a tenant is erased; 30 s by default. */
  graceMs?: number;
}

/** What a turn did: it erased something or looked at what stays, what is left is not over yet, or nothing is left. */
export type Portion = 'erased' | 'waits' | 'finished';
