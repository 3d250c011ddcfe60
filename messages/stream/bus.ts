import type { Artifact } from '../../contracts/parts.js';

/**
 * What happens to a message, told to whoever watches it. `changed`: read the row again; `under_way`: an agent has it, no more;
 * `recorded`: all that was said so far is in the row, so that who begins to watch begins here.
 */
export type BusEvent =
  | { kind: 'changed'; under_way?: true; recorded?: true }
  | { kind: 'artifact'; artifact: Artifact; append: boolean; last_chunk: boolean }
  | { kind: 'status_text'; text: string };

/**
 * What the bus itself tells a follower. `gap`: events between the one before and the next are lost. `caught_up`: to one that goes on
 * after a cursor, once: what was kept has been told, or is known to be gone.
 */
export type BusNotice = { kind: 'gap' } | { kind: 'caught_up' };

/** An event with its place in the message's stream; cursors of a message's events rise by one. */
export interface PlacedEvent {
  cursor: number;
  event: BusEvent | BusNotice;
  /** Of its JSON; 0 for what is not output. */
  bytes: number;
}

/**
 * Carries output chunks and change notices to watchers (architecture.md, decision 7). Nothing on it is the record:
 * a lost notice costs a watcher its fallback poll, a lost chunk is in the final task.
 */
export interface ChunkBus {
  publish(tenantId: string, messageId: string, event: BusEvent): void;
  /**
   * Replays what is kept after `afterCursor`, then follows; with 0, what is kept since the newest `recorded`. A `gap` is placed where
   * following after its cursor would lead to what comes next. The returned function ends it.
   */
  subscribe(
    tenantId: string,
    messageId: string,
    afterCursor: number,
    listener: (placed: PlacedEvent) => void,
  ): () => void;
  /** Whether events get through to other processes now. */
  isReachable(): Promise<boolean>;
  close(): Promise<void>;
}
