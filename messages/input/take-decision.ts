import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { MessageState } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { newEventId, newId } from '../../runtime/ids.js';
import { digestOf } from '../digest.js';
import type { AskedRequest, InputRequestRow, MessageRow } from '../read/rows.js';
import { userMessage } from '../read/task.js';
import { formProblem } from './form.js';
import type { Seen } from './identify.js';
import { type Principal, principalName } from './principals.js';
import type { Decision } from './resolution.js';

/** Who decides about a request. */
export interface Voter {
  principal: Principal;
  /** The credentials whose vote it may be. */
  standsFor: readonly string[];
}

/** A decision about an open request. */
export interface Answer {
  /** Null: the answer does not fit a request of this kind. */
  decision: Decision | null;
  /** The error if `decision` is null; its text begins with `text`. Its code is also used if the answer does not fit the form. */
  invalid: { code: 'BAD_REQUEST' | 'INVALID_PARAMS'; text: string };
  comment?: string | undefined;
  /** The arguments of the tool call as the approver edited them. They have passed the policies. */
  arguments?: Record<string, unknown> | undefined;
  /** The turn that the answer adds to the task's history; by default it is made from the decision. */
  turn?: A2aMessage;
}

/** Why a decision does not fit its request; null when it fits. */
function problemOf({ decision, ...answer }: Answer, request: AskedRequest): string | null {
  const { code: _, text } = answer.invalid;
  if (!decision) return `${text} ${request.kind}.`;
  const problem = request.kind === 'form' && decision.positive ? formProblem(request, decision.data ?? {}) : null;
  if (problem !== null) return `data: ${problem}`;
  if (answer.arguments === undefined) return null;
  if (request.stage !== 'tool') return 'arguments: only those of a tool call can be edited.';
  return decision.positive ? null : 'arguments: what is rejected cannot be edited.';
}

/** What was approved: the request as it was asked, or a tool call with the arguments as they were edited. */
function approvedDigest(request: AskedRequest, edited: Record<string, unknown> | undefined): string {
  const { digest, tool, executor } = request;
  return edited === undefined ? digest : digestOf({ tool, arguments: edited, executor });
}

/** An agent's question is a turn of the task's history, and so is the answer to it. */
function turnOf(row: MessageRow, request: InputRequestRow, answer: object): A2aMessage | undefined {
  if (request.source !== 'agent') return undefined;
  return {
    ...userMessage(row),
    messageId: `${request.request_id}:answer`,
    parts: [{ kind: 'data', data: { ...answer } }],
  };
}

/** @throws PlatformError CALLBACK_TOKEN_EXPIRED for a request whose time ran out, also before its workflow has noted that */
export function checkInTime({ expires_at }: Pick<InputRequestRow, 'expires_at'>): void {
  if (expires_at.getTime() <= Date.now())
    throw new PlatformError('CALLBACK_TOKEN_EXPIRED', 'The time to answer ran out.');
}

/** The error text for a decision whose own `digest` is outdated. */
const CHANGED = 'digest: what is asked has changed since, because somebody edited the arguments.';

/** @param named ids of the request, from the decision's body, its token and the review. @throws PlatformError ALREADY_RESOLVED for another request */
export function checkNamed(
  { request_id }: Pick<AskedRequest, 'request_id'>,
  named: readonly (string | undefined)[],
  text: string,
): void {
  if (named.some((id) => id !== undefined && id !== request_id)) throw new PlatformError('ALREADY_RESOLVED', text);
}

/**
 * @param digest the digest in the decision
 * @param seen the digest that the principal is known to have seen, used if the decision has none
 * @throws PlatformError CONFLICT where what is asked has changed since
 */
export function checkSeen(request: Pick<AskedRequest, 'digest'>, digest: string | undefined, seen?: Seen): void {
  const read = digest === undefined ? seen : { digest, changed: CHANGED };
  if (read && read.digest !== request.digest) throw new PlatformError('CONFLICT', read.changed);
}

/** A decision as the SQL functions take it: a `resolve_call` (db/functions/input/resolve_input.sql). @throws PlatformError naming what does not fit */
function resolveCall({ principal, standsFor }: Voter, request: AskedRequest, answered: Answer) {
  const problem = problemOf(answered, request);
  const { decision, invalid, comment } = answered;
  if (problem !== null || !decision) throw new PlatformError(invalid.code, problem ?? invalid.text);
  const digest = approvedDigest(request, answered.arguments);
  const edited = digest === request.digest ? undefined : answered.arguments;
  const { tenant_id, request_id } = request;
  return {
    ...{ tenant_id, request_id },
    approval_id: newId('apv'),
    principal_type: principal.type,
    principal_id: principal.id,
    voter: principal.voter,
    stands_for: standsFor,
    resolution: decision.word,
    positive: decision.positive,
    ...(edited && { arguments: JSON.stringify(edited) }),
    digest,
    comment,
    ip: principal.ip,
    answer: { request_id, resolution: decision.word, data: decision.data, comment, arguments: edited },
    resolved_by: principalName(principal),
    event_id: newEventId(),
  };
}

function decidedBefore(): PlatformError {
  return new PlatformError(
    'ALREADY_RESOLVED',
    'This principal has decided about the request before. An alert rule and the credentials that wrote it count as one.',
  );
}

/**
 * Records a decision about an open request: request, audit row, message and events. The caller holds the message's lock and has checked that the principal may
 * answer, and that the time is not over.
 * @returns the message's state afterwards: `working`, `failed` where a rejection ends it, `input-required` while the quorum is not reached
 * @throws PlatformError ALREADY_RESOLVED for a principal who has decided before, and `invalid.code` naming what does not fit
 */
export async function takeDecision(
  tx: Tx,
  voter: Voter,
  row: MessageRow,
  request: InputRequestRow,
  answered: Answer,
): Promise<MessageState> {
  const call = resolveCall(voter, request, answered);
  const turn = answered.turn ?? turnOf(row, request, call.answer);
  const [result] = await tx.query<{ state: MessageState | null }>('SELECT resolve_input($1) AS state', [
    JSON.stringify({ ...call, message_id: row.message_id, turn }),
  ]);
  if (result?.state) return result.state;
  throw decidedBefore();
}

/**
 * Records a decision about the open request of a plan: request and audit row. The caller holds the plan's lock, has asked as for `takeDecision`,
 * and writes what follows for the plan.
 * @returns the request's state afterwards: `pending` while the quorum is not reached
 * @throws PlatformError as `takeDecision`
 */
export async function takePlanDecision(
  tx: Tx,
  voter: Voter,
  request: AskedRequest,
  answered: Answer,
): Promise<'pending' | 'resolved'> {
  const call = resolveCall(voter, request, answered);
  const [result] = await tx.query<{ state: 'pending' | 'resolved' | null }>(
    'SELECT resolve_plan_request($1) AS state',
    [JSON.stringify(call)],
  );
  if (result?.state) return result.state;
  throw decidedBefore();
}
