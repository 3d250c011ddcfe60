import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isTerminal, type MessageState, type ResolveRequest } from '../../contracts/api/messages.js';
import { answerRefusal } from '../../contracts/permissions.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import type { MessageCore, MessageRef } from '../core.js';
import { lockRunning, readMessage } from '../read/read.js';
import type { InputRequestRow, MessageRow, Resolution } from '../read/rows.js';
import { userMessage } from '../read/task.js';
import { formProblem } from './form.js';
import { type Decision, readResolution } from './resolution.js';

/** The response of `/messages/{id}/resolve`. */
export interface Resolved {
  message_id: string;
  new_state: MessageState;
  resolution: string | Record<string, unknown>;
}

/** The error when no request is open: 409 or 410, by the state of the latest one. */
async function noOpenRequest(tx: Tx, row: MessageRow): Promise<PlatformError> {
  const [latest] = await tx.query<{ state: string }>(
    `SELECT state FROM input_requests WHERE tenant_id = $1 AND message_id = $2 ORDER BY requested_at DESC, request_id DESC LIMIT 1`,
    [row.tenant_id, row.message_id],
  );
  if (latest?.state === 'expired') return new PlatformError('CALLBACK_TOKEN_EXPIRED', 'The time to answer ran out.');
  if (latest?.state === 'resolved') return new PlatformError('ALREADY_RESOLVED', 'The request was already resolved.');
  return new PlatformError('NOT_AWAITING_INPUT', `The message does not wait for an answer; it is ${row.state}.`);
}

/**
 * Records the answer to an open request: request, audit row, message and event. The caller holds the message's lock. The message is
 * `working` afterwards; its workflow sends the answer to the agent in a new dispatch.
 */
export async function claimRequest(
  tx: Tx,
  row: MessageRow,
  request: InputRequestRow,
  resolved: { decision: Decision; principal: string; comment?: string; turn: A2aMessage },
): Promise<void> {
  const { decision, principal, comment, turn } = resolved;
  const { request_id } = request;
  const { word: resolution, data } = decision;
  const answer: Resolution = {
    request_id,
    resolution,
    ...(data && { data }),
    ...(comment !== undefined && { comment }),
  };
  const { tenant_id, message_id } = row;
  const ids = { tenant_id, message_id, request_id, decision_id: newId('apv'), event_id: newId('evt') };
  await tx.query('SELECT resolve_input($1)', [
    JSON.stringify({ ...ids, principal, resolution, data, comment, answer, turn }),
  ]);
}

function decisionFor(request: InputRequestRow, body: ResolveRequest): Decision {
  const decision = readResolution(request.kind, body.resolution, body.data);
  if (!decision)
    throw new PlatformError('BAD_REQUEST', `resolution: not an answer to a request of kind ${request.kind}.`);
  checkForm(request, decision);
  return decision;
}

/** @throws PlatformError BAD_REQUEST naming the field that breaks the form's schema */
export function checkForm(request: InputRequestRow, decision: Decision): void {
  if (request.kind !== 'form' || !decision.positive) return;
  const problem = formProblem({ schema: request.schema, fields: request.fields }, decision.data ?? {});
  if (problem !== null) throw new PlatformError('BAD_REQUEST', `data: ${problem}`);
}

/** The user's turn that an answer adds to the task's history. */
function answerTurn(
  row: MessageRow,
  request: InputRequestRow,
  decision: Decision,
  comment: string | undefined,
): A2aMessage {
  const data = {
    request_id: request.request_id,
    resolution: decision.word,
    ...(decision.data && { data: decision.data }),
  };
  return {
    ...userMessage(row),
    messageId: `${request.request_id}:answer`,
    parts: [{ kind: 'data', data: { ...data, ...(comment !== undefined && { comment }) } }],
  };
}

/** @throws PlatformError forbidden unless the caller may answer the message's open request */
export async function checkMayAnswer(tx: Tx, caller: Caller, row: MessageRow, request: InputRequestRow): Promise<void> {
  const [agent] = await tx.query<{ credential_id: string | null }>(
    'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [row.tenant_id, row.instance_id],
  );
  const question = { source: request.source, registered_with: agent?.credential_id ?? null };
  const refusal = answerRefusal(caller, question);
  if (refusal !== null) throw new PlatformError('forbidden', refusal);
}

/**
 * Answers the open request of a message (`/messages/{id}/resolve`) in one transaction: of two concurrent answers one succeeds.
 * @param caller null for a callback token without a JWT, which approval webhooks issue
 * @throws PlatformError unauthorized, forbidden, NOT_FOUND, BAD_REQUEST, ALREADY_RESOLVED, NOT_AWAITING_INPUT, CALLBACK_TOKEN_EXPIRED
 */
export async function resolveMessage(
  core: MessageCore,
  caller: Caller | null,
  messageId: string,
  body: ResolveRequest,
): Promise<Resolved> {
  if (!caller) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
  const ref: MessageRef = { tenant_id: caller.tenant_id, message_id: messageId };
  const session_id = await core.db.tenant(ref.tenant_id, async (tx) => {
    await lockRunning(tx, ref);
    const found = await readMessage(tx, ref.tenant_id, messageId);
    if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    const { row, request } = found;
    if (isTerminal(row.state) || !request) throw await noOpenRequest(tx, row);
    if (body.request_id !== undefined && body.request_id !== request.request_id) {
      throw new PlatformError('ALREADY_RESOLVED', 'The request of that request_id is no longer open.');
    }
    await checkMayAnswer(tx, caller, row, request);
    if (request.expires_at.getTime() <= Date.now())
      throw new PlatformError('CALLBACK_TOKEN_EXPIRED', 'The time to answer ran out.');
    const decision = decisionFor(request, body);
    const turn = answerTurn(row, request, decision, body.comment);
    const comment = body.comment === undefined ? {} : { comment: body.comment };
    await claimRequest(tx, row, request, { decision, principal: caller.sub, turn, ...comment });
    return row.session_id;
  });
  core.bus.publish(ref.tenant_id, messageId, { kind: 'changed' });
  core.workflowStarter.message({ ...ref, session_id });
  return { message_id: messageId, new_state: 'working', resolution: body.resolution };
}
