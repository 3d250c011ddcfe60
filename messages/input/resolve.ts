import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isTerminal, type MessageState, type ResolveRequest } from '../../contracts/api/messages.js';
import { answerRefusal } from '../../contracts/permissions.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageCore, MessageRef } from '../core.js';
import { lockRunning, readMessage } from '../read/read.js';
import type { InputRequestRow, MessageRow } from '../read/rows.js';
import { userMessage } from '../read/task.js';
import { formProblem } from './form.js';
import { type Decision, readResolution } from './resolution.js';

/** The response of `/messages/{id}/resolve`. */
export interface Resolved {
  message_id: string;
  new_state: MessageState;
  resolution: string | Record<string, unknown>;
}

/** An answer to an open request. */
interface Answer {
  /** Null: it does not answer a request of this kind. */
  decision: Decision | null;
  /** The error for such an answer begins so; its code is also that of an answer that does not fit the form. */
  invalid: { code: 'BAD_REQUEST' | 'INVALID_PARAMS'; text: string };
  comment?: string | undefined;
  /** The turn that it adds to the task's history; by default made from the decision. */
  turn?: A2aMessage;
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

/** @throws PlatformError forbidden unless the caller may answer the message's open request */
async function checkMayAnswer(tx: Tx, caller: Caller, row: MessageRow, { source }: InputRequestRow): Promise<void> {
  const [agent] = await tx.query<{ credential_id: string | null }>(
    'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [row.tenant_id, row.instance_id],
  );
  const refusal = answerRefusal(caller, { source, registered_with: agent?.credential_id ?? null });
  if (refusal !== null) throw new PlatformError('forbidden', refusal);
}

/**
 * Records the answer to an open request: request, audit row, message and event. The caller holds the message's lock. The message is
 * `working` afterwards; its workflow sends the answer to the agent in a new dispatch.
 * @throws PlatformError forbidden, CALLBACK_TOKEN_EXPIRED, and `invalid.code` naming the field that breaks the form's schema
 */
export async function claimRequest(
  tx: Tx,
  caller: Caller,
  row: MessageRow,
  request: InputRequestRow,
  { decision, invalid, comment, turn }: Answer,
): Promise<void> {
  await checkMayAnswer(tx, caller, row, request);
  if (request.expires_at.getTime() <= Date.now())
    throw new PlatformError('CALLBACK_TOKEN_EXPIRED', 'The time to answer ran out.');
  const { request_id, kind } = request;
  if (!decision) throw new PlatformError(invalid.code, `${invalid.text} ${kind}.`);
  const problem = kind === 'form' && decision.positive ? formProblem(request, decision.data ?? {}) : null;
  if (problem !== null) throw new PlatformError(invalid.code, `data: ${problem}`);
  const answer = { request_id, resolution: decision.word, data: decision.data, comment };
  const { tenant_id, message_id } = row;
  const ids = { tenant_id, message_id, decision_id: newId('apv'), event_id: newId('evt') };
  const turnOfAnswer = {
    ...userMessage(row),
    messageId: `${request_id}:answer`,
    parts: [{ kind: 'data', data: answer }],
  };
  await tx.query('SELECT resolve_input($1)', [
    JSON.stringify({ ...ids, ...answer, principal: caller.sub, answer, turn: turn ?? turnOfAnswer }),
  ]);
}

/** After the commit: streams read the message again, and its workflow goes on. */
export function announceAnswer(core: MessageCore, message: MessageRef & SessionRef): void {
  core.bus.publish(message.tenant_id, message.message_id, { kind: 'changed' });
  core.workflowStarter.message(message);
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
    if (body.request_id !== undefined && body.request_id !== request.request_id)
      throw new PlatformError('ALREADY_RESOLVED', 'The request of that request_id is no longer open.');
    await claimRequest(tx, caller, row, request, {
      decision: readResolution(request.kind, body.resolution, body.data),
      invalid: { code: 'BAD_REQUEST', text: 'resolution: not an answer to a request of kind' },
      comment: body.comment,
    });
    return row.session_id;
  });
  announceAnswer(core, { ...ref, session_id });
  return { message_id: messageId, new_state: 'working', resolution: body.resolution };
}
