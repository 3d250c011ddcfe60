import { agentKeyOf } from '../../agents/agent-row.js';
import type { Authenticator } from '../../auth/authenticator.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import { PlatformError } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import type { Connection } from '../connection/connection.js';
import { outdatedConnections, touchConnections } from '../connection/connection-rows.js';
import type { MeshContext } from '../connection/context.js';

/** Rows compared in one statement. */
const BATCH = 1_000;

/**
 * Compares what the node holds in memory with the database and the credentials, one turn at a time: dispatches closed
 * elsewhere, agents that connected elsewhere, revoked tokens; and writes down which agents live.
 */
export class Reconciler {
  readonly #context: MeshContext;
  readonly #authenticator: Authenticator;
  #touchedAtMs = performance.now();

  constructor(context: MeshContext, authenticator: Authenticator) {
    this.#context = context;
    this.#authenticator = authenticator;
  }

  /** One turn. Rejects when the database is away; what was not done is done in the next. */
  async turn(): Promise<void> {
    await this.#context.statuses.retry();
    await this.#dropClosedDispatches();
    await this.#dropOutdatedConnections();
    await this.#touch();
    await this.#checkTokens();
  }

  #live(): Connection[] {
    return this.#context.registry.all().filter((connection) => connection.isLive);
  }

  async #dropClosedDispatches(): Promise<void> {
    const { inflight, dispatches } = this.#context;
    for (const batch of batches(inflight.open())) {
      const closed = await dispatches.closedAmong(batch.map((dispatch) => dispatch.ref));
      for (const { dispatch_id, state } of closed) inflight.get(uuidOf(dispatch_id))?.closedElsewhere(state);
    }
  }

  async #dropOutdatedConnections(): Promise<void> {
    const { db, meshId, registry } = this.#context;
    for (const batch of batches(registry.all())) {
      const outdated = await db.system((tx) => outdatedConnections(tx, meshId, batch));
      for (const found of outdated) {
        const connection = registry.get(agentKeyOf(found));
        // While a hello is being answered here, a higher epoch may be this node's own.
        if (!connection || connection.epoch !== found.epoch || registry.isGreeting(connection.agentKey)) continue;
        if (found.reason === 'deregistered') connection.deregistered();
        // A lost connection may be resumed, whatever the epoch says meanwhile: its window ends it.
        if (!connection.isLive) continue;
        if (found.reason === 'replaced') connection.happen('replaced');
        if (found.reason === 'presumed_dead') connection.socket.close(CLOSE_CODES.GOING_AWAY, 'connect again');
      }
    }
  }

  async #touch(): Promise<void> {
    const { db, timings } = this.#context;
    if (performance.now() - this.#touchedAtMs < timings.signOfLifeMs) return;
    const alive = this.#live().filter((connection) => connection.showedLife);
    for (const batch of batches(alive)) await db.system((tx) => touchConnections(tx, batch));
    for (const connection of alive) connection.showedLife = false;
    this.#touchedAtMs = performance.now();
  }

  /** Asks for one token of each credential; only where that has ceased to stand, for all of them. */
  async #checkTokens(): Promise<void> {
    const byCredential = new Map<string, Connection[]>();
    for (const connection of this.#live()) {
      const { credential_id } = connection.upgraded;
      const others = byCredential.get(credential_id);
      if (others) others.push(connection);
      else byCredential.set(credential_id, [connection]);
    }
    for (const connections of byCredential.values()) {
      const [first] = connections;
      if (!first || (await this.#stands(first))) continue;
      for (const connection of connections) if (!(await this.#stands(connection))) connection.expireToken();
    }
  }

  /** Whether a connection's token is still good. Rejects when that cannot be told: sockets outlive the database. */
  async #stands(connection: Connection): Promise<boolean> {
    try {
      await this.#authenticator.authenticate(connection.upgraded.token);
      return true;
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'unauthorized') return false;
      throw error;
    }
  }
}

function* batches<T>(items: T[]): Iterable<T[]> {
  for (let start = 0; start < items.length; start += BATCH) yield items.slice(start, start + BATCH);
}
