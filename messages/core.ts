import type { AgentRef } from '../agents/agent-row.js';
import type { Db } from '../db/pool.js';
import type { PolicyEngine } from '../policy/policy-engine.js';
import type { Clocks } from '../runtime/clocks.js';
import type { Logger } from '../runtime/logger.js';
import type { SessionRef } from '../sessions/session-deps.js';
import type { ChunkBus } from './stream/bus.js';

/** Identifies a message across tenants. */
export interface MessageRef {
  tenant_id: string;
  message_id: string;
}

/**
 * Starts or wakes workflows. It never throws: the row has `wake_requested_at`, and the sweeper repeats the wake-up until the workflow has
 * cleared it.
 */
export interface WorkflowStarter {
  /** @param options.fresh the message was accepted just now and has no workflow yet, so that no signal is needed */
  message(ref: MessageRef & SessionRef, options?: { fresh: boolean }): void;
  session(ref: SessionRef): void;
}

/** The dependencies of the functions in `messages/`. */
export interface MessageCore {
  db: Db;
  bus: ChunkBus;
  log: Logger;
  workflowStarter: WorkflowStarter;
  /** An agent may have got room. The platform sets it where this process takes messages from queues; elsewhere it does nothing. Never throws. */
  fill: (agent: AgentRef) => void;
  policies: PolicyEngine;
  clocks: Pick<Clocks, 'leaseMs' | 'watchMs'>;
  limits: {
    /** How long a message waits while no agent of its target is online. */
    queueWaitMs: number;
    /** After how long a message gets its workflow. */
    watchAfterMs: number;
    /** How long a human may take to answer. */
    inputExpiryMs: number;
    /** Messages of a tenant that may be `submitted` or `working` at once; 429 beyond. */
    tenantMaxInFlight: number;
    /** Messages of a tenant that may wait for input at once; 429 beyond. */
    tenantMaxWaiting: number;
    /** How long a `messageId` identifies the same message. */
    idempotencyHours: number;
  };
}
