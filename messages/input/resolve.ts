import { slotOf } from '../../agents/agent-row.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { MessageState, ResolveRequest } from '../../contracts/api/messages.js';
import { isTerminal } from '../../contracts/message-states.js';
import { isLimited } from '../../contracts/permissions.js';
import type { Tx } from '../../db/pool.js';
import { rehearse } from '../../db/rehearsal.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';
import { logEnd } from '../dispatch/message-end.js';
import { findOwnMessage, lockRunning, readMessage } from '../read/read.js';
import type { InputRequestRow, MessageRow } from '../read/rows.js';
import { recordMessageDecision } from '../record-decision.js';
import { checkCallbackToken, spendCallbackToken, type TakeToken, tenantOfToken } from './callback-tokens.js';
import { reviewArguments } from './edited-arguments.js';
import { inspectAnswer } from './guarded-answer.js';
import { byCaller, byToken, type Identify } from './identify.js';
import { askerOfMessage } from './principals.js';
import { readResolution } from './resolution.js';
import { checkInTime, checkNamed, checkSeen, takeDecision, type Voter } from './take-decision.js';

/** The response of `/messages/{id}/resolve`. `message_id`: the id in the path, even if it is a plan's. */
export interface Resolved {
  message_id: string;
  plan_id?: string;
  new_state: MessageState;
  resolution: string | Record<string, unknown>;
}

const noMessage = () => new PlatformError('NOT_FOUND', 'There is no message of that message_id.');

/** A message that waits for a human. */
interface AskedMessage {
  row: MessageRow;
  request: InputRequestRow;
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

/** After the commit: notifies streams, takes the message's next step, and wakes its workflow. @param state the message's state after the decision */
export function announceAnswer(core: MessageCore, row: MessageRow, state: MessageState): void {
  core.bus.publish(row.tenant_id, row.message_id, { kind: 'changed' });
  const { tenant_id, message_id, session_id } = row;
  if (state === 'working') core.advance({ tenant_id, message_id, session_id });
  core.workflowStarter.message({ tenant_id, message_id, session_id });
  if (state === 'failed') logEnd(core.log, { ...row, state, dispatch_id: null, code: 'APPROVAL_REJECTED' });
}

/** A decision as it comes in. `dry_run`: nothing is written, and neither guards nor policies look at it. */
export type DecisionRequest = Pick<
  ResolveRequest,
  'resolution' | 'request_id' | 'comment' | 'data' | 'arguments' | 'digest'
> & { dry_run?: boolean };

/** The open request of a message. @throws PlatformError NOT_FOUND, ALREADY_RESOLVED, NOT_AWAITING_INPUT, CALLBACK_TOKEN_EXPIRED */
async function openRequest(tx: Tx, ref: MessageRef, named: (string | undefined)[]): Promise<AskedMessage> {
  const found = await readMessage(tx, ref.tenant_id, ref.message_id);
  if (!found) throw noMessage();
  const { row, request } = found;
  if (isTerminal(row.state) || !request) throw await noOpenRequest(tx, row);
  checkNamed(request, named, 'The request of that request_id is no longer open.');
  return { row, request };
}

/** A decision about the open request of a message, by whomever `identify` finds. */
interface Deciding {
  ref: MessageRef;
  body: DecisionRequest;
  /** Runs again when the message is locked. */
  identify: Identify;
}

/**
 * The open request of a message, for a principal who may decide about it, in time.
 * @param reviewedId the request whose edited arguments the policies have looked at: the decision must be about no other
 * @throws PlatformError as `resolveAs`
 */
async function answerable(
  tx: Tx,
  { ref, body, identify }: Deciding,
  takeToken: TakeToken,
  reviewedId?: string,
): Promise<AskedMessage & Voter> {
  const { principal, request_id, seen } = await identify(tx, takeToken);
  const asked = await openRequest(tx, ref, [body.request_id, request_id, reviewedId]);
  const standsFor = await principal.mayAnswer(tx, askerOfMessage(asked.row), asked.request);
  checkInTime(asked.request);
  checkSeen(asked.request, body.digest, seen);
  return { ...asked, principal, standsFor };
}

/**
 * Lets guards look at the answer, and policies at edited arguments, before anything is locked. Their findings are shown only to a principal who may decide, in
 * time. `decide` checks both again.
 * @returns the request for which edited arguments were looked at
 * @throws PlatformError forbidden for what is denied; and as `resolveAs`
 */
async function review(core: MessageCore, deciding: Deciding): Promise<string | undefined> {
  const { ref, body } = deciding;
  const { comment, data, resolution, arguments: edited } = body;
  const check = () => core.db.tenant(ref.tenant_id, (tx) => answerable(tx, deciding, checkCallbackToken));
  await inspectAnswer(core, ref, { comment, data, resolution }, () => check().then(() => true));
  if (!edited) return undefined;
  const { request_id } = (await check()).request;
  const denied = await reviewArguments(core, ref, request_id, edited);
  if (!denied) return request_id;
  await core.db.tenant(ref.tenant_id, async (tx) => {
    await answerable(tx, deciding, checkCallbackToken, request_id); // whoever may not decide any more hears that instead
    await recordMessageDecision(tx, ref, denied.events);
  });
  throw denied.error;
}

/** Locks the message and decides. @param reviewedId as `review` gives it. @throws PlatformError as `resolveAs` */
async function decide(tx: Tx, deciding: Deciding, reviewedId: string | undefined) {
  const { ref, body } = deciding;
  const running = await lockRunning(tx, ref);
  const { row, request, ...voter } = await answerable(tx, deciding, spendCallbackToken, reviewedId);
  const state = await takeDecision(tx, voter, row, request, {
    decision: readResolution(request.kind, body.resolution, body.data),
    invalid: { code: 'BAD_REQUEST', text: 'resolution: not an answer to a request of kind' },
    comment: body.comment,
    arguments: body.arguments,
  });
  return { row, state, freed: state === 'failed' && running ? slotOf(running) : null };
}

/**
 * Decides about the open request of a message in one transaction: of two concurrent decisions one succeeds. Guards and policies look at the answer before that.
 * @param identify runs again when the message is locked
 * @throws PlatformError NOT_FOUND, forbidden, BAD_REQUEST, ALREADY_RESOLVED, NOT_AWAITING_INPUT, CALLBACK_TOKEN_EXPIRED, CONFLICT if the request's digest is
 * not the one in the body, else the one that the token's delivery announced
 */
export async function resolveAs(
  core: MessageCore,
  ref: MessageRef,
  body: DecisionRequest,
  identify: Identify,
): Promise<Resolved> {
  const { message_id, tenant_id } = ref;
  const { resolution } = body;
  const deciding = { ref, body, identify };
  if (body.dry_run) {
    const { state } = await rehearse(core.db, tenant_id, (tx) => decide(tx, deciding, undefined));
    return { message_id, new_state: state, resolution };
  }
  const reviewedId = await review(core, deciding);
  const { row, state, freed } = await core.db.tenant(tenant_id, (tx) => decide(tx, deciding, reviewedId));
  announceAnswer(core, row, state);
  if (freed) core.nodes.fill(freed);
  return { message_id, new_state: state, resolution };
}

/**
 * `/messages/{id}/resolve`.
 * @param caller null without an access token: then the body's callback token decides, which answers one request once
 * @param ip the network address of the caller
 * @throws PlatformError unauthorized, and as `resolveAs`
 */
export async function resolveMessage(
  core: MessageCore,
  caller: Caller | null,
  messageId: string,
  body: ResolveRequest,
  ip?: string,
): Promise<Resolved> {
  if (caller) {
    const ref = { tenant_id: caller.tenant_id, message_id: messageId };
    if (isLimited(caller) && !(await findOwnMessage(core.db, caller, messageId))) throw noMessage();
    return resolveAs(core, ref, body, byCaller(caller, ip));
  }
  const token = body.callback_token ?? '';
  const tenant_id = await tenantOfToken(core.db, token, messageId);
  return resolveAs(core, { tenant_id, message_id: messageId }, body, byToken(tenant_id, token, ip));
}
