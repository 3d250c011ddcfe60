import type { AgentRef } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import { readable } from '../read/readable.js';
import type { DispatchDetails } from '../read/rows.js';
import type { DispatchRef, OpenDispatch } from './dispatches.js';
import { openDispatchFrom } from './open-dispatch.js';

/** The running dispatches of one agent, which a stopping node offers to the agent's next node. */
interface Transfer extends AgentRef {
  /** The node that offers them. */
  mesh_id: string;
  /** The epoch of the connection that the agent had. */
  epoch: number;
  /** SHA-256 of the tokens with which the agent may continue. */
  resume_token_hashes: Buffer[];
  /** How long the agent may take to come to its next node, in milliseconds. */
  window_ms: number;
  dispatches: OfferedDispatch[];
}

/** `progress()`: what the transport needs to continue the dispatch. It is made only when it is written, because for all dispatches together it may be large. */
interface OfferedDispatch {
  dispatch_id: string;
  progress(): string;
}

/**
 * Offers dispatches to the agent's next node. Their states do not change; nobody ends them until a node claims them or the window is over. A dispatch that has
 * ended, or belongs to another node, is not offered.
 */
export async function offerDispatches(tx: Tx, transfer: Transfer): Promise<void> {
  const { tenant_id, instance_id, mesh_id, epoch, resume_token_hashes: hashes, window_ms } = transfer;
  for (const { dispatch_id, progress } of transfer.dispatches) {
    await tx.query(OFFER, [tenant_id, instance_id, mesh_id, epoch, hashes, window_ms, dispatch_id, progress()]);
  }
}

const OFFER = `
  INSERT INTO dispatch_transfers (tenant_id, instance_id, mesh_id, epoch, resume_token_hashes, expires_at, dispatch_id, progress)
    SELECT $1, $2, $3, $4, $5, now() + $6 * interval '1 ms', d.dispatch_id, $8
      FROM dispatches d WHERE d.tenant_id = $1 AND d.dispatch_id = $7 AND d.mesh_id = $3 AND d.epoch = $4 AND d.state = 'sent'
  ON CONFLICT (tenant_id, instance_id, dispatch_id) DO UPDATE SET mesh_id = excluded.mesh_id, epoch = excluded.epoch,
    resume_token_hashes = excluded.resume_token_hashes, expires_at = excluded.expires_at, progress = excluded.progress`;

const MATCHING = `t.tenant_id = $1 AND t.instance_id = $2 AND $3 = ANY (t.resume_token_hashes) AND t.expires_at > now()`;

/** The ids of the dispatches that are offered to an agent with this token. */
export async function offeredDispatchIds(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  hash: Buffer,
): Promise<string[]> {
  const offered = `SELECT t.dispatch_id FROM dispatch_transfers t WHERE ${MATCHING}`;
  const rows = await tx.query<{ dispatch_id: string }>(offered, [tenant_id, instance_id, hash]);
  return rows.map(({ dispatch_id }) => dispatch_id);
}

/** A dispatch that this node continues for another. */
export interface TransferredDispatch {
  open: OpenDispatch;
  progress: string;
}

/**
 * Claims those of these dispatches that are still offered, sent and their messages' current ones: from the commit on they belong to this node and epoch. Their
 * offers, with the progress, stay on the record until `forgetOffers`.
 * @returns their ids
 */
export async function claimDispatches(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  by: { hash: Buffer; dispatchIds: string[]; epoch: number; meshId: string },
): Promise<string[]> {
  const claimed = await tx.query<{ dispatch_id: string }>(
    `UPDATE dispatches d SET epoch = $5, mesh_id = $6 FROM dispatch_transfers t, running_messages r
      WHERE ${MATCHING} AND t.dispatch_id = ANY ($4)
        AND d.tenant_id = $1 AND d.dispatch_id = t.dispatch_id AND d.epoch = t.epoch AND d.state = 'sent'
        AND r.tenant_id = d.tenant_id AND r.message_id = d.message_id AND r.current_dispatch_id = d.dispatch_id
      RETURNING d.dispatch_id`,
    [tenant_id, instance_id, by.hash, by.dispatchIds, by.epoch, by.meshId],
  );
  return claimed.map(({ dispatch_id }) => dispatch_id);
}

/** Reads claimed dispatches with their progress. Those that have ended meanwhile are missing. */
export async function readClaimed(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  dispatchIds: readonly string[],
): Promise<TransferredDispatch[]> {
  const rows = await tx.query<DispatchDetails & { progress: string }>(
    `SELECT d.*, t.progress FROM dispatch_transfers t JOIN dispatch_details d USING (tenant_id, dispatch_id)
      WHERE t.tenant_id = $1 AND t.instance_id = $2 AND t.dispatch_id = ANY ($3) AND d.is_open`,
    [tenant_id, instance_id, dispatchIds],
  );
  return rows.map(({ progress, ...row }) => ({ open: openDispatchFrom(readable(row)), progress }));
}

/** Claimed dispatches, and the epoch under which they were claimed. */
interface Claimed extends AgentRef {
  dispatchIds: readonly string[];
  epoch: number;
}

/** Offers claimed dispatches as they were offered before: the agent has lost its socket and may come to any node with the same token. */
export async function offerAgain(
  tx: Tx,
  { tenant_id, instance_id, dispatchIds, epoch }: Claimed,
  windowMs: number,
): Promise<void> {
  await tx.query(
    `WITH offered AS (
       UPDATE dispatch_transfers t SET epoch = $4, expires_at = now() + $5 * interval '1 ms'
        WHERE t.tenant_id = $1 AND t.instance_id = $2 AND t.dispatch_id = ANY ($3) AND t.epoch < $4 RETURNING t.dispatch_id, t.mesh_id)
     UPDATE dispatches d SET mesh_id = o.mesh_id FROM offered o
      WHERE d.tenant_id = $1 AND d.dispatch_id = o.dispatch_id AND d.epoch = $4 AND d.state = 'sent'`,
    [tenant_id, instance_id, dispatchIds, epoch, windowMs],
  );
}

/** Deletes the offers of claimed dispatches. */
export async function forgetOffers(tx: Tx, { tenant_id, instance_id, dispatchIds, epoch }: Claimed): Promise<void> {
  await tx.query(
    'DELETE FROM dispatch_transfers WHERE tenant_id = $1 AND instance_id = $2 AND dispatch_id = ANY ($3) AND epoch < $4',
    [tenant_id, instance_id, dispatchIds, epoch],
  );
}

/** Whether a dispatch waits for its agent to come to its next node. */
export async function isOffered(tx: Tx, { tenant_id, dispatch_id }: DispatchRef, instanceId: string): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM dispatch_transfers t JOIN dispatches d USING (tenant_id, dispatch_id, epoch)
      WHERE t.tenant_id = $1 AND t.instance_id = $2 AND t.dispatch_id = $3 AND t.expires_at > now()`,
    [tenant_id, instanceId, dispatch_id],
  );
  return rows.length > 0;
}
