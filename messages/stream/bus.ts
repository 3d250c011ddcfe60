import type { Artifact } from '../../contracts/a2a/parts.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

/** Events kept for each message, beside its newest notice; the oldest are dropped first. */
export const BUFFERED_EVENTS_MAX = 256;
/** Bytes of JSON kept for each message; the newest event is kept even when it is larger. */
export const BUFFERED_BYTES_MAX = 1024 * 1024;
/** The events of a message are kept this long after the newest. */
export const RETENTION_MS = 600_000;

/**
 * An event of a message. `changed`: the row has changed. With `under_way` it has changed only because an agent has got the message; with `recorded` the row
 * contains all output so far, and new subscribers begin here. `restarted`: the agent was lost, and the next one begins the answer anew.
 */
export type BusEvent =
  | { kind: 'changed'; under_way?: true; recorded?: true }
  | { kind: 'restarted' }
  | { kind: 'artifact'; artifact: Artifact; append: boolean; last_chunk: boolean }
  | { kind: 'status_text'; text: string };

/**
 * A notice of the bus to one subscriber. `gap`: events between the one before and the next are lost. `caught_up`: once to a subscriber
 * that continues after a cursor: it has received all retained events, or a `gap`.
 */
export type BusNotice = { kind: 'gap' } | { kind: 'caught_up' };

/** An event with its cursor in the message's stream; the cursors of successive events differ by one. */
export interface BusItem {
  cursor: number;
  event: BusEvent | BusNotice;
  /** The size of its JSON; 0 for an event without output. */
  bytes: number;
}

export type BusListener = (item: BusItem) => void;

/**
 * Carries output chunks and change notices to the streams and calls that wait for a message. It is not the record: after a lost notice a
 * reader polls the row, and the final task contains lost chunks.
 */
export interface ChunkBus {
  publish(tenantId: string, messageId: string, event: BusEvent): void;
  /**
   * Delivers the retained events after `afterCursor`, then new ones. With 0 it begins at the newest `recorded`. A `gap` has the cursor from
   * which the next event continues. The returned function ends the subscription.
   */
  subscribe(tenantId: string, messageId: string, afterCursor: number, listener: BusListener): () => void;
  /** The keys in Redis of these messages, or, with null, of the tenant: some thousands at most. @throws while Redis is away */
  keysOf(tenantId: string, messageIds: readonly string[] | null): Promise<string[]>;
  /**
   * Drops what this process retains of these messages, or with null of all messages of the tenant, and these keys.
   * @throws while Redis is away
   */
  forget(tenantId: string, messageIds: readonly string[] | null, keys: readonly string[]): Promise<void>;
  /** Whether events reach other processes now. */
  isReachable(): Promise<boolean>;
  close(): Promise<void>;
}

/** Calls a listener. Its errors are logged, so that they reach neither the publisher nor other listeners. */
export function deliver(listener: BusListener, item: BusItem, log: Pick<Logger, 'error'>): void {
  try {
    listener(item);
  } catch (error) {
    log.error({ err: errorMessage(error) }, 'a listener of the chunk bus failed');
  }
}
