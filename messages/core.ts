import type { AgentRef } from '../agents/agent-row.js';
import type { MessageState } from '../contracts/api/messages.js';
import type { MessageInput } from '../contracts/workflows.js';
import type { Db } from '../db/pool.js';
import type { PolicyEngine } from '../policy/policy-engine.js';
import type { Clocks } from '../runtime/clocks.js';
import type { Logger } from '../runtime/logger.js';
import type { SessionRef } from '../sessions/session-deps.js';
import type { ChunkBus } from './stream/bus.js';
import type { LocalChanges } from './stream/local-changes.js';

/** Identifies a message across tenants. */
export interface MessageRef {
  tenant_id: string;
  message_id: string;
}

/** A message as a waiting call or stream has last read it. */
export interface KnownMessage extends MessageRef {
  state: MessageState;
  updated_at: Date;
}

/** A queue of messages that wait for an agent (db/functions/routing/queues.sql). */
export interface QueueRef {
  tenant_id: string;
  queue: string;
}

/** Starts or wakes workflows in the background. It never throws: what must not be lost is repeated by a sweeper. */
export interface WorkflowStarter {
  message(ref: MessageInput): void;
  session(ref: SessionRef): void;
}

/** The mesh nodes, as far as this process reaches them. Its methods never throw: if a notice is lost, a loop does the same a second or two later. */
export interface Nodes {
  /** An agent may have got room: its node takes queued messages for it. @param meshId its node; looked up if it is not given */
  fill(agent: AgentRef, meshId?: string | null): void;
  /** Messages wait in a queue: agents that have room get them. */
  look(queue: QueueRef): void;
  /** A dispatch was canceled on the record: its node tells the agent. */
  cancel(dispatch: MessageRef & { dispatch_id: string; mesh_id: string | null }): void;
}

/** The dependencies of the functions in `messages/`. */
export interface MessageCore {
  db: Db;
  bus: ChunkBus;
  local: LocalChanges;
  /** Tells streams and waiting calls whether a message has changed although no notice came. */
  changes: { hasChanged(known: KnownMessage): Promise<boolean> };
  log: Logger;
  workflowStarter: WorkflowStarter;
  /** Takes a message that rests a step further, in the background and in this process (supervise/advance.ts). Never throws. */
  advance: (ref: MessageInput) => void;
  /** `NO_NODES` until `startDispatcher` (platform/platform.ts) has joined runner, taker and nodes: messages only join queues until then. */
  nodes: Nodes;
  policies: PolicyEngine;
  clocks: Pick<Clocks, 'overdueMs' | 'rereadMs'>;
  limits: {
    /** How long a message waits while no agent of its target is online. */
    queueWaitMs: number;
    /** After how long a message gets its workflow. */
    watchAfterMs: number;
    /** How long a human may take to answer. */
    inputExpiryMs: number;
    /** Messages of a tenant that agents may have at once. Further messages wait. */
    tenantMaxInFlight: number;
    /** Messages of a tenant that may wait for agents at once; 429 beyond. */
    tenantMaxQueued: number;
    /** Messages of a tenant that may wait for input at once; 429 beyond. */
    tenantMaxWaiting: number;
    /** Operators may decide by a signal to a message's workflow. */
    decidesBySignal: boolean;
    /** How long a `messageId` identifies the same message. */
    idempotencyHours: number;
  };
}
