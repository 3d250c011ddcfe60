import pLimit from 'p-limit';
import type { AgentWithRoom } from '../../agents/agent-row.js';
import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { type ConnectionChange, type ConnectionRef, changeConnection } from './connection-rows.js';

/** Agents whose rows are written at once: when a thousand sockets are lost together, other work needs the database too. */
const AT_ONCE = 4;

interface Pending {
  connection: ConnectionRef;
  change: ConnectionChange;
}

/**
 * Writes heartbeats and changes of connections to the agents' rows: one write at a time per agent, with later changes merged into the
 * pending one. A change that could not be written is kept for `retry`. The epoch fences off the row of a newer connection.
 */
export class StatusWriter {
  readonly #pending = new Map<string, Pending>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #limit = pLimit(AT_ONCE);
  readonly #db: Db;
  readonly #log: Logger;
  readonly #onRoom: (tenantId: string, agent: AgentWithRoom) => Promise<void>;

  /** @param onRoom called when an agent may have got room */
  constructor(db: Db, log: Logger, onRoom: (tenantId: string, agent: AgentWithRoom) => Promise<void>) {
    this.#db = db;
    this.#log = log;
    this.#onRoom = onRoom;
  }

  /** Resolves when the change is written or kept for `retry`. */
  write(connection: ConnectionRef, change: ConnectionChange): Promise<void> {
    const key = agentKeyOf(connection);
    const waiting = this.#pending.get(key);
    if (waiting && waiting.connection.epoch > connection.epoch) return this.#flush(key); // the epoch fences it off anyway
    const before = waiting?.connection.epoch === connection.epoch ? waiting.change : {};
    const beat = before.beat || change.beat ? { ...before.beat, ...change.beat } : undefined;
    const { tenant_id, instance_id, epoch } = connection;
    this.#pending.set(key, { connection: { tenant_id, instance_id, epoch }, change: { ...before, ...change, beat } });
    return this.#flush(key);
  }

  /** Writes what is kept; stops when nothing can be written. */
  async retry(): Promise<void> {
    const keys = [...this.#pending.keys()];
    for (let start = 0; start < keys.length; start += AT_ONCE) {
      const some = keys.slice(start, start + AT_ONCE);
      await Promise.all(some.map((key) => this.#flush(key)));
      if (some.every((key) => this.#pending.has(key))) return;
    }
  }

  #flush(key: string): Promise<void> {
    const running = this.#writing.get(key) ?? this.#writeAll(key).finally(() => this.#writing.delete(key));
    this.#writing.set(key, running);
    return running;
  }

  async #writeAll(key: string): Promise<void> {
    for (let next = this.#pending.get(key); next !== undefined; next = this.#pending.get(key)) {
      const { connection, change } = next;
      try {
        const withRoom = await this.#limit(() =>
          this.#db.tenant(connection.tenant_id, (tx) => changeConnection(tx, connection, change)),
        );
        if (withRoom) this.#wakeQueued(connection.tenant_id, withRoom);
      } catch (error) {
        this.#log.warn(
          { err: errorMessage(error), instance_id: connection.instance_id },
          'agent status could not be written yet',
        );
        return;
      }
      if (this.#pending.get(key) === next) this.#pending.delete(key);
    }
  }

  /** Not awaited: queued messages look for an agent by themselves, only later. */
  #wakeQueued(tenantId: string, agent: AgentWithRoom): void {
    this.#onRoom(tenantId, agent).catch((error: unknown) =>
      this.#log.warn({ err: errorMessage(error) }, 'queued messages could not be woken'),
    );
  }
}
