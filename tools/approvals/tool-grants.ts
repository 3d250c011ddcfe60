import type { Executor } from '../../contracts/api/messages.js';
import type { ToolCallPayload } from '../../contracts/api/tools.js';
import type { Db } from '../../db/pool.js';
import { digestOf } from '../../messages/digest.js';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import { inputRequestCall, type NewInputRequest } from '../../messages/input/ask.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { type AskingVerdict, askerOf } from '../../policy/verdict.js';
import { isTransient } from '../../runtime/errors.js';
import { newEventId, newId } from '../../runtime/ids.js';

/** How a call that needs approval goes on, which the record may know already: `grant_answer` in db/functions/input/tool_grants.sql. */
export interface GrantAnswer {
  kind:
    | 'waits'
    | 'occupied'
    | 'granted'
    | 'used'
    | 'used_by_other'
    | 'rejected'
    | 'expired'
    | 'withdrawn'
    | 'closed'
    | 'failed';
  /** Null: there is no request. So with `failed`, with `closed` from `hold_tool_call`, and with `occupied` where the dispatch is ending. */
  request_id: string | null;
  /** Of a `granted` call: the arguments that were approved. */
  arguments: Record<string, unknown> | null;
  /** Of a `rejected` call: what the human wrote. */
  comment: string | null;
  /** The agent that had the message, where it has failed. */
  freed_id: string | null;
}

/** What a process needs to go on with a call whose arguments are in its request. Plain JSON: it is stored. */
export interface StoredCall {
  payload: Omit<ToolCallPayload, 'arguments'>;
  /** The frame to answer; absent for a caller over HTTP, who asks again. */
  frame_id?: string;
  traceparent?: string;
  /** Milliseconds that the call itself had left. */
  deadline_ms: number;
}

/** A call about which a human is to be asked. */
export interface CallToHold {
  dispatch: DispatchRef;
  meshId: string;
  /** A UUID of this call alone: a repeat with it may use the grant that the call has used already. */
  useId: string;
  tool: string;
  arguments: Record<string, unknown>;
  executor: Executor;
  target: ToolCallPayload['target'];
  verdict: AskingVerdict;
  /** What the policies were asked. */
  policyRequest: PolicyRequest;
  stored: StoredCall;
}

/** The columns of `grant_answer` but for the composite's form. */
const COLUMNS = 'kind, request_id, arguments, comment, freed_id';

/**
 * Holds a call of a message's dispatch until a human has decided, in one transaction: the request with its events, the message's state, and the
 * dispatch's deadline, which stands still. If the record already has an answer about the call, it returns that.
 * @returns with `asked` whether the human was asked just now
 */
export async function holdToolCall(db: Db, call: CallToHold): Promise<GrantAnswer & { asked: boolean }> {
  const { tenant_id, message_id, dispatch_id } = call.dispatch;
  const request = requestOf(call);
  const given = {
    ...{ tenant_id, message_id, dispatch_id, node_id: call.meshId, use_id: call.useId },
    target: call.target ?? {},
    call: call.stored,
    request: inputRequestCall(request),
    event_id: newEventId(),
  };
  const hold = () =>
    db.call<GrantAnswer>(tenant_id, 'hold_tool_call', `SELECT ${COLUMNS} FROM hold_tool_call($1)`, [
      JSON.stringify(given),
    ]);
  // Repeated once: if only the answer was lost, the record has a request that nobody announces, or a used grant.
  const [answer] = await hold().catch((error: unknown) => {
    if (!isTransient(error)) throw error;
    return hold();
  });
  if (!answer) throw new Error('hold_tool_call gave no row');
  return { ...answer, asked: answer.kind === 'waits' && answer.request_id === request.request_id };
}

/** The request to a human about a call. */
function requestOf({ tool, arguments: given, executor, policyRequest, verdict }: CallToHold): NewInputRequest {
  const { arguments: _asked, ...policy_request } = policyRequest;
  return {
    request_id: newId('req'),
    kind: 'approval',
    stage: 'tool',
    title: `Call ${tool}?`,
    action: 'call',
    ...askerOf(verdict),
    tool,
    arguments: given,
    executor,
    policy_request,
    terms: verdict.terms,
    digest: digestOf({ tool, arguments: given, executor }),
  };
}

/**
 * Uses the decision on a request for the call that waits for it.
 * @param mayPass false for a caller that is gone: it gets a refusal, and a grant is left for the next call
 * @param useId a UUID of this call alone: a repeat with it may use the grant that the call has used already
 * @returns `waits` while the request is open
 */
export async function useToolGrant(
  db: Db,
  dispatch: DispatchRef,
  requestId: string,
  mayPass: boolean,
  useId: string,
): Promise<GrantAnswer> {
  const { tenant_id, message_id, dispatch_id } = dispatch;
  const [answer] = await db.call<GrantAnswer>(
    tenant_id,
    'use_tool_grant',
    `SELECT ${COLUMNS} FROM use_tool_grant($1, $2, $3, $4, $5, $6)`,
    [tenant_id, message_id, dispatch_id, requestId, mayPass, useId],
  );
  if (!answer) throw new Error('use_tool_grant gave no row');
  return answer;
}

/** Returns a grant whose call reached no agent or tool, so that another call may use it. Changes nothing if another call has used it. */
export async function returnToolGrant(db: Db, tenantId: string, requestId: string, useId: string): Promise<void> {
  const values = [tenantId, requestId, useId];
  await db.call(tenantId, 'return_tool_grant', 'SELECT return_tool_grant($1, $2, $3)', values);
}

/** Records the outcome of a call that used a grant. @param errorCode null if it succeeded */
export async function recordCallOutcome(db: Db, tenantId: string, requestId: string, errorCode: string | null) {
  const values = [tenantId, requestId, errorCode, newEventId()];
  await db.call(tenantId, 'record_call_outcome', 'SELECT record_call_outcome($1, $2, $3, $4)', values);
}

/** The agent has withdrawn a call that waits. @returns whether nobody had decided before */
export async function withdrawToolCall(db: Db, dispatch: DispatchRef, requestId: string): Promise<boolean> {
  const { tenant_id, message_id, dispatch_id } = dispatch;
  const [row] = await db.call<{ withdrawn: boolean }>(
    tenant_id,
    'withdraw_tool_call',
    'SELECT withdraw_tool_call($1, $2, $3, $4) AS withdrawn',
    [tenant_id, message_id, dispatch_id, requestId],
  );
  return row?.withdrawn === true;
}

/** A call that another process held. */
export interface TakenOverCall extends DispatchRef {
  request_id: string;
  call: StoredCall;
  /** The use id of a call that has used its grant, so that its tool may have run; null for one that has not. */
  used_by: string | null;
}

/** The result of a call that has waited went out to its agent: no process that takes the dispatch over answers it again. */
export async function noteToolAnswer(db: Db, tenantId: string, requestId: string): Promise<void> {
  const text = 'UPDATE tool_grants SET answered_at = now() WHERE tenant_id = $1 AND request_id = $2';
  await db.tenant(tenantId, (tx) => tx.query(text, [tenantId, requestId]));
}

/** The calls of these dispatches that wait, or whose result has not gone out, for this process to answer from now on. */
export function takeOverToolCalls(
  db: Db,
  tenantId: string,
  dispatchIds: string[],
  meshId: string,
): Promise<TakenOverCall[]> {
  return db.call(
    tenantId,
    'take_over_tool_calls',
    'SELECT tenant_id, message_id, dispatch_id, request_id, call, used_by FROM take_over_tool_calls($1, $2, $3)',
    [tenantId, dispatchIds, meshId],
  );
}

/** The requests of a process's calls that were decided since a time by the database's clock, and that clock's time now. */
export async function decidedSince(db: Db, meshId: string, since: Date | null) {
  const rows = await db.system((tx) =>
    tx.query<{ request_id: string | null; now: Date }>(
      `SELECT g.request_id, t.now FROM (SELECT now() AS now) AS t
         LEFT JOIN tool_grants g ON g.node_id = $1 AND g.decided_at >= coalesce($2::timestamptz, t.now) - interval '1 minute'`,
      [meshId, since],
    ),
  );
  return { now: rows[0]?.now ?? null, requestIds: rows.flatMap(({ request_id }) => request_id ?? []) };
}

/** Whether a request is still open. */
export async function isOpenRequest(db: Db, tenantId: string, requestId: string): Promise<boolean> {
  const rows = await db.tenant(tenantId, (tx) =>
    tx.query(`SELECT 1 FROM input_requests WHERE tenant_id = $1 AND request_id = $2 AND state = 'pending'`, [
      tenantId,
      requestId,
    ]),
  );
  return rows.length > 0;
}
