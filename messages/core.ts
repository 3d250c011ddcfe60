import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import type { SessionRef } from '../sessions/session-deps.js';
import type { ChunkBus } from './stream/bus.js';

/** A message, named. */
export interface MessageRef {
  tenant_id: string;
  message_id: string;
}

/**
 * Starts or wakes the durable workflows. Neither throws: the row says that a wake-up is wanted, and the sweeper repeats
 * it until the workflow has answered (architecture.md, decisions 2 and 6).
 */
export interface WorkflowStarter {
  /** `fresh`: the message was accepted just now and has no workflow yet, so that starting one is enough. */
  message(ref: MessageRef & SessionRef, options?: { fresh: boolean }): void;
  session(ref: SessionRef): void;
}

/** What the functions of `messages/` work with. */
export interface MessageCore {
  db: Db;
  bus: ChunkBus;
  log: Logger;
  workflowStarter: WorkflowStarter;
  limits: {
    /** How long a message without a free agent stays `submitted`. */
    queueWaitMs: number;
    /** How long a human may take to answer. */
    inputExpiryMs: number;
    /** Messages of one tenant that may be in flight, those that wait for input apart; 429 beyond. */
    tenantMaxInFlight: number;
    /** Messages of one tenant that may wait for input; 429 beyond. */
    tenantMaxWaiting: number;
    /** For how long a `messageId` names the same message; after it, it is new. */
    idempotencyHours: number;
  };
}
