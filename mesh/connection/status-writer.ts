import pLimit from 'p-limit';
import { agentKeyOf } from '../../agents/agent-key.js';
import type { AgentWithRoom } from '../../agents/agent-room.js';
import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { type ConnectionChange, type ConnectionRef, changeConnection } from './connection-rows.js';

/** Agents whose rows are written at once: when a thousand sockets are lost in one moment, others need the database too. */
const AT_ONCE = 4;

interface Pending {
  connection: ConnectionRef;
  change: ConnectionChange;
}

/**
 * Writes what agents report and what happens to their connections to the agents' rows: one write at a time per agent, later news merged into what still
 * waits. What could not be written is kept for `retry`; a newer connection's row is never touched (the epoch fences it).
 */
export class StatusWriter {
  readonly #pending = new Map<string, Pending>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #limit = pLimit(AT_ONCE);
  readonly #db: Db;
  readonly #log: Logger;
  readonly #onRoom: (tenantId: string, agent: AgentWithRoom) => Promise<void>;

  /** @param onRoom called after an agent reported that it may have room */
  constructor(db: Db, log: Logger, onRoom: (tenantId: string, agent: AgentWithRoom) => Promise<void>) {
    this.#db = db;
    this.#log = log;
    this.#onRoom = onRoom;
  }

  /** Resolves when it is written, or kept because the database did not take it. */
  write(connection: ConnectionRef, change: ConnectionChange): Promise<void> {
    const key = agentKeyOf(connection);
    const waiting = this.#pending.get(key);
    if (waiting && waiting.connection.epoch > connection.epoch) return this.#flush(key); // fenced off anyway
    const before = waiting?.connection.epoch === connection.epoch ? waiting.change : {};
    const beat = before.beat || change.beat ? { ...before.beat, ...change.beat } : undefined;
    const { tenant_id, instance_id, epoch } = connection;
    this.#pending.set(key, { connection: { tenant_id, instance_id, epoch }, change: { ...before, ...change, beat } });
    return this.#flush(key);
  }

  /** Tries again what is kept, until nothing of it can be written. */
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
        const roomy = await this.#limit(() =>
          this.#db.tenant(connection.tenant_id, (tx) => changeConnection(tx, connection, change)),
        );
        if (roomy) this.#wakeQueued(connection.tenant_id, roomy);
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

  /** Not waited for: messages that wait look again by themselves, only later. */
  #wakeQueued(tenantId: string, agent: AgentWithRoom): void {
    this.#onRoom(tenantId, agent).catch((error: unknown) =>
      this.#log.warn({ err: errorMessage(error) }, 'messages that wait for an agent could not be called'),
    );
  }
}
