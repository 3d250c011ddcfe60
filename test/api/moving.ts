import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { nextStep } from '../../messages/supervise/next-step.js';
import { insertAgent } from '../setup/core.js';
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

/** Brings a message to its agent and the agent's answer back: what a worker and a mesh node do. */
export async function answerMessage(api: ServedApi, messageId: string, outcome: AnswerOrFailure): Promise<void> {
  const ref = { tenant_id: api.tenantId, message_id: messageId };
  await nextStep(api.core, ref);
  const [dispatch] = await api.database.query<{ dispatch_id: string; epoch: number }>(
    `SELECT dispatch_id, epoch::int FROM dispatches WHERE message_id = $1 AND state IN ('open', 'sent')`,
    [messageId],
  );
  if (!dispatch) throw new Error(`message ${messageId} has no open dispatch`);
  const dispatches = createDispatches(api.core);
  const named = { ...ref, dispatch_id: dispatch.dispatch_id };
  const sent = await dispatches.markSent(named, { mesh_id: MESH, epoch: dispatch.epoch });
  if (!sent) throw new Error(`message ${messageId} could not be sent`);
  await dispatches.end(sent, outcome, dispatch.epoch);
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
