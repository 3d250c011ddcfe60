import type { AgentRef } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import type { DispatchRef } from './dispatches.js';

/** An agent's dispatch that is open or sent. */
export interface OpenDispatchRef extends DispatchRef, Record<string, unknown> {
  /** The node that sent it. */
  mesh_id: string;
}

const OPEN = `
  r.tenant_id = $1 AND r.instance_id = $2 AND r.holds_slot
  AND d.tenant_id = r.tenant_id AND d.dispatch_id = r.current_dispatch_id AND d.state IN ('open', 'sent')`;
const COLUMNS = 'd.tenant_id, d.message_id, d.dispatch_id, d.mesh_id';

/** The dispatches of an agent that are open or sent. */
export function openDispatches(tx: Tx, { tenant_id, instance_id }: AgentRef): Promise<OpenDispatchRef[]> {
  return tx.query(`SELECT ${COLUMNS} FROM dispatches d, running_messages r WHERE ${OPEN}`, [tenant_id, instance_id]);
}

/** Moves an agent's open and sent dispatches to the epoch of the connection that resumes it. @returns the moved dispatches */
export function moveDispatches(
  tx: Tx,
  { tenant_id, instance_id }: AgentRef,
  from: number,
  to: number,
): Promise<OpenDispatchRef[]> {
  return tx.query(
    `UPDATE dispatches d SET epoch = $4 FROM running_messages r WHERE ${OPEN} AND d.epoch = $3 RETURNING ${COLUMNS}`,
    [tenant_id, instance_id, from, to],
  );
}

/** The states of an agent's dispatches by id, without ids that are not the agent's. `isOpen`: open or sent. */
export async function dispatchStates(
  tx: Tx,
  agent: AgentRef,
  dispatchIds: readonly string[],
): Promise<Map<string, { state: string; isOpen: boolean }>> {
  // The query goes by the primary key and not by the agent, because an agent may have had many dispatches.
  const rows = await tx.query<{ dispatch_id: string; instance_id: string; state: string }>(
    'SELECT dispatch_id, instance_id, state FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($2)',
    [agent.tenant_id, dispatchIds],
  );
  const own = rows.filter((row) => row.instance_id === agent.instance_id);
  return new Map(
    own.map(({ dispatch_id, state }) => [dispatch_id, { state, isOpen: state === 'open' || state === 'sent' }]),
  );
}
