import type { Artifact } from '../contracts/parts.js';

/** What happens to a message, told to whoever watches it. `changed`: read the row again; `under_way`: an agent has it, no more. */
export type BusEvent =
  | { kind: 'changed'; under_way?: true }
  | { kind: 'artifact'; artifact: Artifact; append: boolean; last_chunk: boolean }
  | { kind: 'status_text'; text: string };

/** An event with its place in the message's stream; cursors rise by one without gaps. */
export interface PlacedEvent {
  cursor: number;
  event: BusEvent;
}

/**
 * Carries output chunks and change notices to watchers (architecture.md, decision 7). Nothing on it is the record:
 * a lost notice costs a watcher its fallback poll, a lost chunk is in the final task.
 */
export interface ChunkBus {
  publish(tenantId: string, messageId: string, event: BusEvent): void;
  /** Replays what is buffered after `afterCursor` (0 = all), then follows. The returned function ends it. */
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
