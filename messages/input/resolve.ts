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
import { spendCallbackToken, tenantOfToken } from './callback-tokens.js';
import { formProblem } from './form.js';
import { type Decision, readResolution } from './resolution.js';

/** The response of `/messages/{id}/resolve`. */
export interface Resolved {
  message_id: string;
  new_state: MessageState;
  resolution: string | Record<string, unknown>;
}

/** Who answers a request. `mayAnswer` throws PlatformError forbidden for one who may not. */
export interface Principal {
  /** As the audit row and `message.resolved` name it. */
  name: string;
  mayAnswer(tx: Tx, row: MessageRow, request: InputRequestRow): Promise<void>;
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

/** A caller with an access token; the request decides whether it may answer. */
export function callerPrincipal(caller: Caller): Principal {
  return {
    name: caller.sub,
    mayAnswer: async (tx, row, { source }) => {
      const [agent] = await tx.query<{ credential_id: string | null }>(
        'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
        [row.tenant_id, row.instance_id],
      );
      const refusal = answerRefusal(caller, { source, registered_with: agent?.credential_id ?? null });
      if (refusal !== null) throw new PlatformError('forbidden', refusal);
    },
  };
}

/** Whoever was proved to be one who may answer, outside of the record: by a callback token, or by the signature of another system. */
export function provenPrincipal(name: string): Principal {
  return { name, mayAnswer: async () => undefined };
}

/**
 * Records the answer to an open request: request, audit row, message and event. The caller holds the message's lock. The message is
 * `working` afterwards; its workflow sends the answer to the agent in a new dispatch.
 * @throws PlatformError forbidden, CALLBACK_TOKEN_EXPIRED, and `invalid.code` naming the field that breaks the form's schema
 */
export async function claimRequest(
  tx: Tx,
  principal: Principal,
  row: MessageRow,
  request: InputRequestRow,
  { decision, invalid, comment, turn }: Answer,
): Promise<void> {
  await principal.mayAnswer(tx, row, request);
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
    JSON.stringify({ ...ids, ...answer, principal: principal.name, answer, turn: turn ?? turnOfAnswer }),
  ]);
}

/** After the commit: streams read the message again, and its workflow goes on. */
export function announceAnswer(core: MessageCore, message: MessageRef & SessionRef): void {
  core.bus.publish(message.tenant_id, message.message_id, { kind: 'changed' });
  core.workflowStarter.message(message);
}

/**
 * Answers the open request of a message in one transaction: of two concurrent answers one succeeds.
 * @param identify gives the principal, and the request that it answers if that is known; runs when the message is locked
 * @throws PlatformError NOT_FOUND, forbidden, BAD_REQUEST, ALREADY_RESOLVED, NOT_AWAITING_INPUT, CALLBACK_TOKEN_EXPIRED
 */
export async function resolveAs(
  core: MessageCore,
  ref: MessageRef,
  body: Pick<ResolveRequest, 'resolution' | 'request_id' | 'comment' | 'data'>,
  identify: (tx: Tx) => Promise<{ principal: Principal; request_id?: string }>,
): Promise<Resolved> {
  const session_id = await core.db.tenant(ref.tenant_id, async (tx) => {
    await lockRunning(tx, ref);
    const { principal, request_id } = await identify(tx);
    const found = await readMessage(tx, ref.tenant_id, ref.message_id);
    if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
    const { row, request } = found;
    if (isTerminal(row.state) || !request) throw await noOpenRequest(tx, row);
    const others = [body.request_id, request_id].filter((id) => id !== undefined && id !== request.request_id);
    if (others.length > 0)
      throw new PlatformError('ALREADY_RESOLVED', 'The request of that request_id is no longer open.');
    await claimRequest(tx, principal, row, request, {
      decision: readResolution(request.kind, body.resolution, body.data),
      invalid: { code: 'BAD_REQUEST', text: 'resolution: not an answer to a request of kind' },
      comment: body.comment,
    });
    return row.session_id;
  });
  announceAnswer(core, { ...ref, session_id });
  return { message_id: ref.message_id, new_state: 'working', resolution: body.resolution };
}

/**
 * `/messages/{id}/resolve`.
 * @param caller null without an access token: then the body's callback token decides, which answers one request once
 * @throws PlatformError unauthorized, and as `resolveAs`
 */
export async function resolveMessage(
  core: MessageCore,
  caller: Caller | null,
  messageId: string,
  body: ResolveRequest,
): Promise<Resolved> {
  if (caller) {
    const ref = { tenant_id: caller.tenant_id, message_id: messageId };
    return resolveAs(core, ref, body, async () => ({ principal: callerPrincipal(caller) }));
  }
  const token = body.callback_token ?? '';
  const tenant_id = await tenantOfToken(core.db, token, messageId);
  return resolveAs(core, { tenant_id, message_id: messageId }, body, async (tx) => {
    const { request_id, rule_id } = await spendCallbackToken(tx, tenant_id, token);
    return { principal: provenPrincipal(`callback:${rule_id}`), request_id };
  });
}
