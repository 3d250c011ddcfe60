import type { AgentWithRoom } from '../agents/agent-room.js';
import type { Db, Tx } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import type { SessionRef } from './session-ref.js';

/** A message that was canceled with its session, and what it was when it was. */
export interface CanceledMessage extends SessionRef {
  message_id: string;
  agent_type: string | null;
  instance_id: string | null;
  current_dispatch_id: string | null;
  holds_slot: boolean;
}

/** What was canceled at once, and the queued messages that are to be woken because they may have the room now. */
export interface Cancellation {
  canceled: CanceledMessage[];
  called: (SessionRef & { message_id: string })[];
}

/** What sessions ask of the messages in them. */
export interface SessionMessages {
  /** Cancels all that a session has in flight, in the caller's transaction. @returns the messages that were canceled */
  cancelAll(tx: Tx, session: SessionRef, reason: string): Promise<CanceledMessage[]>;
  /** Marks one queued message for each agent on which a slot became free. @returns whom to wake after the commit */
  wakeForFreed(tx: Tx, tenantId: string, agents: AgentWithRoom[]): Promise<Cancellation['called']>;
  /** After the commit: tells watchers, workflows and the log what was canceled, and wakes the queued messages. */
  announce(cancellation: Cancellation): void;
}

/** What the functions of `sessions/` work with. */
export interface SessionDeps {
  db: Db;
  log: Logger;
  messages: SessionMessages;
  /** Starts or wakes the workflow of a session. Never throws: the sweeper repeats it until the workflow has answered. */
  wakeSession(ref: SessionRef): void;
}
