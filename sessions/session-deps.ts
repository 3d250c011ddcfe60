import type { AgentRef } from '../agents/agent-row.js';
import type { Db } from '../db/pool.js';
import type { PolicyEngine } from '../policy/policy-engine.js';
import type { Logger } from '../runtime/logger.js';

/** Identifies a session across tenants. */
export interface SessionRef {
  tenant_id: string;
  session_id: string;
}

/** A message that was canceled, as it was before. */
export interface CanceledMessage extends SessionRef {
  message_id: string;
  agent_type: string | null;
  want_agent_type: string | null;
  instance_id: string | null;
  current_dispatch_id: string | null;
  holds_slot: boolean;
  /** Whether the message has a workflow. */
  is_watched: boolean;
  /** The node that its agent got it from; null where no agent has it. */
  mesh_id: string | null;
}

/** Which messages of a session are canceled, and why. */
export interface CancelOptions {
  /** Written into the event of each canceled message. */
  reason: string;
  /** Messages that were accepted later stay; null: all are canceled. */
  acceptedUntil: Date | null;
}

/** The operations on messages that sessions need; `messages/` implements them. */
export interface SessionMessages {
  /** Cancels and announces the messages in flight of a session, in transactions of its own. The caller must not hold the session's lock. */
  cancelInFlight(session: SessionRef, options: CancelOptions): Promise<void>;
  /** To be called after the commit that has freed room on an agent. */
  fill(agent: AgentRef): void;
}

/** The dependencies of the functions in `sessions/`. */
export interface SessionDeps {
  db: Db;
  log: Logger;
  policies: PolicyEngine;
  messages: SessionMessages;
  /** Starts or wakes the workflow of a session. Never throws: the sweeper repeats it until the workflow has answered. */
  wakeSession(ref: SessionRef): void;
}
