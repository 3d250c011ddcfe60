import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { insertAgent } from '../setup/core.js';
import { stepAndTake } from '../setup/take.js';
import type { ServedApi } from './served-api.js';

const MESH = 'mesh_test';

/** An agent with a socket, as far as the record knows. */
export async function joinOnRecord(api: ServedApi, instanceId: string, tenantId = api.tenantId): Promise<void> {
  await api.database.query('INSERT INTO mesh_nodes (mesh_id) VALUES ($1) ON CONFLICT DO NOTHING', [MESH]);
  const agent = { instance_id: instanceId, mesh_id: MESH, connection_epoch: 1 };
  await insertAgent(api.database, { tenant_id: tenantId, ...agent });
}

/** A registered instance has a socket, as far as the record knows, or has lost it. */
export async function setSocket(api: Pick<ServedApi, 'database'>, instanceId: string, isOpen = true): Promise<void> {
  await api.database.query(
    `UPDATE agents SET mesh_id = CASE WHEN $2 THEN 'mesh_1' END, status = CASE WHEN $2 THEN 'available' ELSE 'offline' END,
       connected_at = CASE WHEN $2 THEN now() END WHERE instance_id = $1`,
    [instanceId, isOpen],
  );
}

/** Brings a message to its agent and the agent's answer back: what a mesh node does. */
export async function answerMessage(api: ServedApi, messageId: string, outcome: AnswerOrFailure): Promise<void> {
  const ref = { tenant_id: api.tenantId, message_id: messageId };
  const { step, open } = await stepAndTake(api.core, ref, { meshId: MESH });
  if (!open) throw new Error(`no agent has message ${messageId}: ${JSON.stringify(step)}`);
  await createDispatches(api.core).end(open, outcome, open.epoch);
}

export const COMPLETED: AnswerOrFailure = {
  state: 'completed',
  artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text: 'done' }] }],
};
export const ASKS: AnswerOrFailure = {
  state: 'input-required',
  artifacts: [],
  input_request: { kind: 'confirmation', title: 'Really?', prompt: 'Shall I go on?' },
};
