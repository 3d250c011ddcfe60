import type { Tx } from '../../db/pool.js';
import { readable } from '../read/readable.js';
import type { DispatchDetails } from '../read/rows.js';
import type { DispatchRef, OpenDispatch } from './dispatches.js';
import { openDispatchFrom } from './open-dispatch.js';

interface AgentRef {
  tenant_id: string;
  instance_id: string;
}

/** The running dispatches of one agent, which a stopping node offers to the agent's next node. */
interface Transfer extends AgentRef {
  /** Of the connection that the agent had. */
  epoch: number;
  /** SHA-256 of the tokens with which the agent may continue. */
  resume_token_hashes: Buffer[];
  /** How long the agent may take to come to its next node, in milliseconds. */
  window_ms: number;
  dispatches: OfferedDispatch[];
}

/** `progress()`: what the transport needs to continue it, made when it is written, because of all dispatches together it may be large. */
interface OfferedDispatch {
  dispatch_id: string;
  progress(): string;
}

/** Offers dispatches to the agent's next node. Their states do not change; nobody ends them until a node accepts them or the window is over. */
export async function offerDispatches(tx: Tx, transfer: Transfer): Promise<void> {
  const { tenant_id, instance_id, epoch, resume_token_hashes: hashes, window_ms } = transfer;
  for (const { dispatch_id, progress } of transfer.dispatches) {
    await tx.query(OFFER, [tenant_id, instance_id, epoch, hashes, window_ms, dispatch_id, progress()]);
  }
}

const OFFER = `
  INSERT INTO dispatch_transfers (tenant_id, instance_id, epoch, resume_token_hashes, expires_at, dispatch_id, progress)
  VALUES ($1, $2, $3, $4, now() + $5 * interval '1 ms', $6, $7)
  ON CONFLICT (tenant_id, instance_id, dispatch_id) DO UPDATE SET epoch = excluded.epoch,
    resume_token_hashes = excluded.resume_token_hashes, expires_at = excluded.expires_at, progress = excluded.progress`;

const MATCHING = `
  FROM dispatch_transfers t
 WHERE t.tenant_id = $1 AND t.instance_id = $2 AND $3 = ANY (t.resume_token_hashes) AND t.expires_at > now()`;

/** The ids of the dispatches that are offered to an agent with this token. */
export async function offeredDispatchIds(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  hash: Buffer,
): Promise<string[]> {
  const rows = await tx.query<{ dispatch_id: string }>(`SELECT t.dispatch_id ${MATCHING}`, [
    tenant_id,
    instance_id,
    hash,
  ]);
  return rows.map(({ dispatch_id }) => dispatch_id);
}

/** A dispatch that this node continues for another. */
export interface TransferredDispatch {
  open: OpenDispatch;
  progress: string;
}

/**
 * Accepts those of these dispatches that are still sent and their messages' current ones: from the commit on they belong to this node and
 * epoch.
 */
export async function acceptDispatches(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  by: { hash: Buffer; dispatchIds: string[]; epoch: number; meshId: string },
): Promise<TransferredDispatch[]> {
  const accepted = await tx.query<{ dispatch_id: string; progress: string }>(
    `WITH offered AS (DELETE ${MATCHING} AND t.dispatch_id = ANY ($4) RETURNING t.dispatch_id, t.epoch, t.progress)
     UPDATE dispatches d SET epoch = $5, mesh_id = $6 FROM offered t, running_messages r
      WHERE d.tenant_id = $1 AND d.dispatch_id = t.dispatch_id AND d.epoch = t.epoch AND d.state = 'sent'
        AND r.tenant_id = d.tenant_id AND r.message_id = d.message_id AND r.current_dispatch_id = d.dispatch_id
      RETURNING d.dispatch_id, t.progress`,
    [tenant_id, instance_id, by.hash, by.dispatchIds, by.epoch, by.meshId],
  );
  if (accepted.length === 0) return [];
  const progressOf = new Map(accepted.map(({ dispatch_id, progress }) => [dispatch_id, progress]));
  const rows = await tx.query<DispatchDetails & Record<string, unknown>>(
    'SELECT * FROM dispatch_details WHERE tenant_id = $1 AND dispatch_id = ANY ($2)',
    [tenant_id, [...progressOf.keys()]],
  );
  return rows.map((row) => ({
    open: openDispatchFrom(readable(row)),
    progress: progressOf.get(row.dispatch_id) ?? '',
  }));
}

/** Whether a dispatch waits for its agent to come to its next node. */
export async function isOffered(tx: Tx, { tenant_id, dispatch_id }: DispatchRef, instanceId: string): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM dispatch_transfers
      WHERE tenant_id = $1 AND instance_id = $2 AND dispatch_id = $3 AND expires_at > now()`,
    [tenant_id, instanceId, dispatch_id],
  );
  return rows.length > 0;
}
