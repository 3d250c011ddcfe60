import type { AgentRef } from '../../agents/agent-row.js';
import { tooManyCalls } from '../../db/errors.js';
import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { shareNext } from '../../runtime/promises/share-next.js';
import { type ConnectionChange, type ConnectionRef, changeConnection } from './connection-rows.js';

/**
 * How many agents' rows are written at once, in all and for one tenant: when a thousand sockets are lost together, other work needs the
 * database too. Writes beyond a tenant's limit wait here and hold up no other tenant.
 */
const [AT_ONCE, OF_TENANT_AT_ONCE] = [6, 4];

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
  /** The waiting needs no bound: each agent has one waiting write at most. */
  readonly #turns = new FairSemaphore({
    limit: AT_ONCE,
    perKey: OF_TENANT_AT_ONCE,
    waitingMax: Number.POSITIVE_INFINITY,
    refusal: tooManyCalls,
  });
  readonly #db: Db;
  readonly #log: Logger;
  readonly #fill: (agent: AgentRef) => void;

  /** @param fill called when an agent may have got room */
  constructor(db: Db, log: Logger, fill: (agent: AgentRef) => void) {
    this.#db = db;
    this.#log = log;
    this.#fill = fill;
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

  /** Writes the changes that were kept. Leaves a tenant for the next time once a group of its writes has failed. Never rejects. */
  readonly retry = shareNext(() => this.#retryAll());

  async #retryAll(): Promise<void> {
    const byTenant = new Map<string, string[]>();
    for (const [key, { connection }] of this.#pending) {
      const keys = byTenant.get(connection.tenant_id);
      if (keys) keys.push(key);
      else byTenant.set(connection.tenant_id, [key]);
    }
    await Promise.all([...byTenant.values()].map((keys) => this.#retryTenant(keys)));
  }

  async #retryTenant(keys: string[]): Promise<void> {
    for (let start = 0; start < keys.length; start += OF_TENANT_AT_ONCE) {
      const some = keys.slice(start, start + OF_TENANT_AT_ONCE);
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
        const hasRoom = await this.#turns.run(connection.tenant_id, () =>
          this.#db.tenant(connection.tenant_id, (tx) => changeConnection(tx, connection, change)),
        );
        if (hasRoom) this.#fill(connection);
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
}
