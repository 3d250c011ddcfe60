import type { Authenticator } from '../../auth/authenticator.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import { PlatformError } from '../../runtime/errors.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { Connection } from '../connection/connection.js';
import { outdatedConnections, touchConnections } from '../connection/connection-rows.js';
import type { MeshContext } from '../connection/context.js';

/** Rows compared in one statement. */
const BATCH = 1_000;

/**
 * Compares the node's connections with the database and the credentials: drops those that are outdated or whose token was revoked, and
 * writes which agents are alive.
 */
export class Reconciler {
  readonly #context: MeshContext;
  readonly #authenticator: Authenticator;
  #touchedAtMs = performance.now();

  constructor(context: MeshContext, authenticator: Authenticator) {
    this.#context = context;
    this.#authenticator = authenticator;
  }

  /** Runs once. Rejects when the database is away; the next run does the rest. */
  async turn(): Promise<void> {
    // Not awaited: writes that wait for a tenant's turn must not delay the check for other tenants' revoked tokens.
    void this.#context.statuses.retry();
    await this.#dropOutdatedConnections();
    await this.#touch();
    await this.#checkTokens();
  }

  #live(): Connection[] {
    return this.#context.registry.all().filter((connection) => connection.isLive);
  }

  async #dropOutdatedConnections(): Promise<void> {
    const { db, meshId, registry } = this.#context;
    for (const batch of batches(registry.all())) {
      const outdated = await db.system((tx) => outdatedConnections(tx, meshId, batch));
      for (const found of outdated) {
        const connection = registry.get(agentKeyOf(found));
        // While a hello is answered here, the higher epoch may be this node's own.
        if (!connection || connection.epoch !== found.epoch || registry.isConnecting(connection.agentKey)) continue;
        if (found.reason === 'deregistered') connection.deregistered();
        // A suspended connection ends with its resume window: until then it may be resumed.
        if (!connection.isLive) continue;
        if (found.reason === 'replaced') connection.transition('replaced');
        if (found.reason === 'presumed_dead') connection.socket.close(CLOSE_CODES.GOING_AWAY, 'connect again');
      }
    }
  }

  async #touch(): Promise<void> {
    const { db, clocks } = this.#context;
    if (performance.now() - this.#touchedAtMs < clocks.lastSeenMs) return;
    const alive = this.#live().filter((connection) => connection.receivedFrame);
    for (const batch of batches(alive)) await db.system((tx) => touchConnections(tx, batch));
    for (const connection of alive) connection.receivedFrame = false;
    this.#touchedAtMs = performance.now();
  }

  /** Checks one token of each credential, and all of them only when that one is no longer valid. */
  async #checkTokens(): Promise<void> {
    const byCredential = new Map<string, Connection[]>();
    for (const connection of this.#live()) {
      const { credential_id } = connection.token.agent;
      const others = byCredential.get(credential_id);
      if (others) others.push(connection);
      else byCredential.set(credential_id, [connection]);
    }
    for (const connections of byCredential.values()) {
      const [first] = connections;
      if (!first || (await this.#isTokenValid(first))) continue;
      for (const connection of connections) if (!(await this.#isTokenValid(connection))) connection.expireToken();
    }
  }

  /** Whether a connection's token is still valid. Rejects when that is unknown: no outage of the database closes a socket. */
  async #isTokenValid(connection: Connection): Promise<boolean> {
    try {
      await this.#authenticator.authenticate(connection.token.agent.token);
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
