import type { Tx } from '../../db/pool.js';
import type { DispatchRef } from './dispatch-ref.js';

interface AgentRef {
  tenant_id: string;
  instance_id: string;
}

/** A dispatch of an agent that has not ended. */
export interface OpenDispatchRef extends DispatchRef, Record<string, unknown> {
  /** The node that sent it. */
  mesh_id: string | null;
}

/** The dispatches of an agent that have not ended. */
export function openDispatches(tx: Tx, { tenant_id, instance_id }: AgentRef): Promise<OpenDispatchRef[]> {
  return tx.query(
    `SELECT tenant_id, message_id, dispatch_id, mesh_id FROM dispatches
      WHERE tenant_id = $1 AND instance_id = $2 AND state IN ('open', 'sent')`,
    [tenant_id, instance_id],
  );
}

/** Moves an agent's open dispatches from one epoch to that of the connection that resumes it. @returns those that were moved */
export function moveDispatches(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  from: number,
  to: number,
): Promise<OpenDispatchRef[]> {
  return tx.query(
    `UPDATE dispatches SET epoch = $4 WHERE tenant_id = $1 AND instance_id = $2 AND state IN ('open', 'sent') AND epoch = $3
      RETURNING tenant_id, message_id, dispatch_id, mesh_id`,
    [tenant_id, instance_id, from, to],
  );
}

/** States of an agent's dispatches by id. A dispatch that it never had is missing; one that has not ended is `isOpen`. */
export async function dispatchStates(
  tx: Tx,
  agent: AgentRef,
  dispatchIds: readonly string[],
): Promise<Map<string, { state: string; isOpen: boolean }>> {
  // By the key alone: the agent may have had many more dispatches.
  const rows = await tx.query<{ dispatch_id: string; instance_id: string; state: string }>(
    'SELECT dispatch_id, instance_id, state FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($2)',
    [agent.tenant_id, dispatchIds],
  );
  const own = rows.filter((row) => row.instance_id === agent.instance_id);
  return new Map(
    own.map(({ dispatch_id, state }) => [dispatch_id, { state, isOpen: state === 'open' || state === 'sent' }]),
  );
}
