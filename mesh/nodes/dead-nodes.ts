import type { AgentRow } from '../../agents/agent-row.js';
import { recordHealth } from '../../agents/agents.js';
import type { Db, Tx } from '../../db/pool.js';
import type { Dispatches, DispatchRef } from '../../messages/dispatch/dispatches.js';
import type { Clocks } from '../../runtime/clocks.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';

/** Agents that one transaction takes offline, and dispatches that are ended one after the other. */
const BATCH = 500;
/** Batches of one round. */
const ROUNDS_MAX = 20;
const LOOKS_AT_ALL_MS = 60_000;

interface DeadNodesOptions {
  db: Db;
  log: Logger;
  dispatches: Pick<Dispatches, 'failAsLost'>;
  clocks: Pick<Clocks, 'reconcileMs' | 'deadNodeMs'>;
}

type LostDispatch = DispatchRef & { mesh_id: string };

/** The dead nodes. While no other node lives to do its work, a node counts as dead only after four times as long. */
const DEAD = `
  SELECT mesh_id FROM mesh_nodes WHERE renewed_at < now() - $1 * interval '1 ms'
     * CASE WHEN EXISTS (SELECT 1 FROM mesh_nodes WHERE renewed_at >= now() - $1 * interval '1 ms') THEN 1 ELSE 4 END`;

/** The open dispatches of running messages. Each is found by its key; LIMIT keeps the planner from reading all dispatches. */
const CURRENT = `
  running_messages r CROSS JOIN LATERAL (
    SELECT x.tenant_id, x.message_id, x.dispatch_id, x.mesh_id, x.created_at FROM dispatches x
     WHERE x.tenant_id = r.tenant_id AND x.dispatch_id = r.current_dispatch_id AND x.state IN ('open', 'sent') LIMIT 1) d`;
const COLUMNS = 'd.tenant_id, d.message_id, d.dispatch_id, d.mesh_id';

/** The dispatch `d` is not offered to other nodes, or its offer has expired. */
const UNOFFERED = `
  NOT EXISTS (SELECT 1 FROM dispatch_transfers t WHERE t.tenant_id = d.tenant_id AND t.dispatch_id = d.dispatch_id AND t.expires_at > now())`;

/** Dispatches of the nodes $1 that no other node may claim. */
const OF_NODES = `
  SELECT ${COLUMNS} FROM ${CURRENT} WHERE d.mesh_id = ANY ($1)
     AND ${UNOFFERED}
   LIMIT ${BATCH}`;

/** Dispatches of nodes whose rows are gone: a node that stopped may have written one after its last check. Run once a minute, because it reads all. */
const OF_NOBODY = `
  SELECT ${COLUMNS} FROM ${CURRENT} WHERE d.mesh_id IS NOT NULL AND d.created_at < now() - interval '1 minute'
     AND NOT EXISTS (SELECT 1 FROM mesh_nodes n WHERE n.mesh_id = d.mesh_id)
     AND ${UNOFFERED}
   LIMIT ${BATCH}`;

/** Dispatches that stopping nodes offered and no node claimed in time. */
const UNCLAIMED = `
  SELECT ${COLUMNS} FROM dispatch_transfers t CROSS JOIN LATERAL (
    SELECT x.tenant_id, x.message_id, x.dispatch_id, x.mesh_id FROM dispatches x WHERE x.tenant_id = t.tenant_id AND x.dispatch_id = t.dispatch_id
       AND x.mesh_id = t.mesh_id AND x.epoch = t.epoch AND x.state = 'sent' LIMIT 1) d
   WHERE t.expires_at < now() LIMIT ${BATCH}`;

/**
 * Takes the agents of dead nodes offline, releases dispatches of which nothing was sent, and ends the others as lost. While the database is
 * away, or stands still, no node can renew, and afterwards each looks dead until it has. So no node is declared dead until the database has
 * answered without a gap for `deadNodeMs`. A process that has just started waits as long, because it knows of no earlier outage. Runs in each
 * process with the role mesh or worker.
 */
export class DeadNodes extends Loop {
  readonly #options: DeadNodesOptions;
  /** Since when the database has answered without a failure or a gap; infinite while it does not. All three are on `performance.now()`. */
  #steadySinceMs = Number.POSITIVE_INFINITY;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #lookedAtAllMs = Number.NEGATIVE_INFINITY;

  constructor(options: DeadNodesOptions) {
    const { clocks, log } = options;
    super({ name: 'dead nodes', intervalMs: clocks.reconcileMs, immediate: true, log, work: () => this.look() });
    this.#options = options;
  }

  /** One round. Rejects while the database is away. */
  async look(): Promise<void> {
    const { db, clocks } = this.#options;
    const steadySinceMs = this.#steadySinceMs;
    this.#steadySinceMs = Number.POSITIVE_INFINITY;
    await db.renewal((tx) => tx.query('SELECT 1'));
    const nowMs = performance.now();
    const hasGap = nowMs - this.#answeredAtMs > clocks.deadNodeMs / 2;
    this.#answeredAtMs = nowMs;
    this.#steadySinceMs = hasGap ? nowMs : Math.min(steadySinceMs, nowMs);
    if (nowMs - this.#steadySinceMs < clocks.deadNodeMs) return;
    const looksAtAll = nowMs - this.#lookedAtAllMs >= LOOKS_AT_ALL_MS;
    if (looksAtAll) this.#lookedAtAllMs = nowMs;
    await sweepDeadNodes(this.#options, looksAtAll);
  }
}

/** Ends what dead nodes have left, and forgets them. @throws while the database is away; the next time goes on */
async function sweepDeadNodes(options: DeadNodesOptions, looksAtAll: boolean): Promise<void> {
  const { db, log, clocks } = options;
  const dead = await db.system((tx) => tx.query<{ mesh_id: string }>(DEAD, [clocks.deadNodeMs]));
  const deadIds = dead.map(({ mesh_id }) => mesh_id);
  await endAll(options, () => db.system((tx) => tx.query<LostDispatch>(UNCLAIMED)));
  if (deadIds.length > 0) await endAll(options, () => db.system((tx) => tx.query<LostDispatch>(OF_NODES, [deadIds])));
  if (looksAtAll) await endAll(options, () => db.system((tx) => tx.query<LostDispatch>(OF_NOBODY)));
  if (deadIds.length > 0) await db.system((tx) => tx.query(FORGET_DEAD, [deadIds, clocks.deadNodeMs]));
  for (let more = true; more; ) {
    const agents = await db.system(takeOffline);
    if (agents > 0) log.info({ agents }, 'agents of dead nodes are offline');
    more = agents === BATCH;
  }
}

/** Ends dispatches, batch by batch. One that cannot be ended holds up no other; it is tried again in the next round. */
async function endAll({ dispatches, log }: DeadNodesOptions, find: () => Promise<LostDispatch[]>): Promise<void> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const found = await find();
    for (const { mesh_id, ...ref } of found) {
      const conditions = { mesh_id, unlessOffered: true };
      await dispatches.failAsLost(ref, conditions).catch((error: unknown) => {
        log.warn({ err: errorMessage(error), dispatch_id: ref.dispatch_id }, 'a lost dispatch could not be ended');
      });
    }
    if (found.length > 0) log.info({ dispatches: found.length }, 'dispatches of dead nodes have ended');
    if (found.length < BATCH) return;
  }
}

/** Removes the rows of the nodes $1, except those of nodes that still have dispatches, so that these are found. */
export const FORGET_NODES = `
  DELETE FROM mesh_nodes n WHERE n.mesh_id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM ${CURRENT} WHERE d.mesh_id = n.mesh_id)`;
const FORGET_DEAD = `${FORGET_NODES} AND n.renewed_at < now() - $2 * interval '1 ms'`;

/** Takes connected agents without a living node offline. @returns how many */
async function takeOffline(tx: Tx): Promise<number> {
  const lost = await tx.query<Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'status' | 'drained'>>(
    `WITH lost AS (
       SELECT tenant_id, instance_id, agent_type, status, drained FROM agents a
        WHERE mesh_id IS NOT NULL AND deployment_mode = 'connected'
          AND NOT EXISTS (SELECT 1 FROM mesh_nodes n WHERE n.mesh_id = a.mesh_id)
        LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
     UPDATE agents a SET status = 'offline', mesh_id = NULL, connected_at = NULL FROM lost
      WHERE a.tenant_id = lost.tenant_id AND a.instance_id = lost.instance_id RETURNING lost.*`,
  );
  for (const agent of lost) if (agent.status !== 'offline') await recordHealth(tx, agent, 'offline');
  return lost.length;
}
