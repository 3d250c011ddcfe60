import type { Caller } from '../contracts/api/auth.js';
import type { RequestOutcome } from '../contracts/api/messages.js';
import type { ApprovalPrincipal } from '../contracts/api/policies/approvals.js';
import type { RequestRecord, RequestState } from '../contracts/api/policies/requests.js';
import { answerRefusal, isLimited, senderOf } from '../contracts/permissions.js';
import { NO_AGENT, PERSON_PREFIX } from '../contracts/primitives.js';
import type { Tx } from '../db/pool.js';
import { isOfAgent, sendersOf, voterOf } from '../messages/input/principals.js';
import { textsIn } from '../messages/read/lists/list-filters.js';
import { readPageRequests } from '../messages/read/lists/page-rows.js';
import type { AskedRequest } from '../messages/read/rows.js';
import { inputRequestOf } from '../messages/read/task.js';

/** A request as its row has it. */
export type StoredState = 'pending' | 'resolved' | 'expired' | 'withdrawn';

/** The states of rows in the words of the API. */
export const STATES: Record<StoredState, RequestState> = {
  pending: 'open',
  resolved: 'decided',
  expired: 'expired',
  withdrawn: 'withdrawn',
};

/** A request without what it asks: whose message or plan it is about, and what became of it. */
export interface RequestSummary
  extends Pick<AskedRequest, 'request_id' | 'session_id' | 'stage' | 'source' | 'approvers' | 'allow_self' | 'digest'> {
  message_id: string | null;
  plan_id: string | null;
  state: StoredState;
  expires_at: Date;
  ended_at: Date | null;
  agent_type: string | null;
  user_id: string | null;
  /** The credential that sent the message or created the plan, and its name. */
  credential_id: string;
  credential_name: string | null;
  /** Of a repeat, the credential that sent the message first. */
  first_credential_id: string | null;
  /** The type of an agent that did. */
  sender_agent_type: string | null;
  /** The credential that registered the agent that asks. */
  registered_with: string | null;
  has_voted: boolean;
  is_affirmative: boolean;
  outcome: Exclude<RequestOutcome['state'], 'pending'> | null;
  error_code: string | null;
  settled_at: Date | null;
}

/** Those of the requests $2 whose message or plan is there, in their order. `$3`: how the caller counts towards a quorum. */
const SUMMARIES = `
  SELECT q.request_id, q.message_id, q.plan_id, q.session_id, q.stage, q.source, q.approvers, q.allow_self, q.digest, q.state, q.expires_at, q.ended_at,
         coalesce(m.agent_type, m.want_agent_type) AS agent_type, coalesce(m.user_id, s.user_id) AS user_id,
         coalesce(m.credential_id, p.credential_id) AS credential_id, c.name AS credential_name, m.first_credential_id,
         coalesce(m.sender_agent_type, nullif(p.agent_type, '${NO_AGENT}')) AS sender_agent_type,
         CASE WHEN p.agent_type <> '${NO_AGENT}' THEN p.credential_id ELSE a.credential_id END AS registered_with,
         EXISTS (SELECT 1 FROM input_decisions d WHERE d.tenant_id = $1 AND d.request_id = q.request_id AND d.voter = $3 AND d.digest = q.digest) AS has_voted,
         is_affirmative(q) AS is_affirmative, o.outcome, o.error_code, o.settled_at
    FROM unnest($2::text[]) WITH ORDINALITY AS k (request_id, place)
    JOIN input_requests q ON q.tenant_id = $1 AND q.request_id = k.request_id
    LEFT JOIN messages m ON m.tenant_id = $1 AND m.message_id = q.message_id
    LEFT JOIN plans p ON p.tenant_id = $1 AND p.plan_id = q.plan_id
    LEFT JOIN sessions s ON s.tenant_id = $1 AND s.session_id = q.session_id
    LEFT JOIN credentials c ON c.tenant_id = $1 AND c.credential_id = coalesce(m.credential_id, p.credential_id)
    LEFT JOIN agents a ON a.tenant_id = $1 AND a.instance_id = m.instance_id
    LEFT JOIN decision_outcomes o ON o.tenant_id = $1 AND o.request_id = q.request_id
   WHERE coalesce(m.message_id, p.plan_id) IS NOT NULL ORDER BY k.place`;

/** The summaries of these requests, in their order. */
export function readSummaries(tx: Tx, caller: Caller, requestIds: string[]): Promise<RequestSummary[]> {
  const values = [caller.tenant_id, requestIds, voterOf(caller)];
  return tx.query<RequestSummary>(SUMMARIES, values);
}

/** Whether an answer of the caller would be taken. */
export function mayAnswer(caller: Caller, request: RequestSummary): boolean {
  const { state, expires_at, has_voted, source, stage, approvers, allow_self, registered_with } = request;
  if (state !== 'pending' || has_voted || expires_at.getTime() <= Date.now()) return false;
  const by_agent = isOfAgent(stage);
  const question = { source, by_agent, registered_with, approvers, allow_self, sent_with: sendersOf(request) };
  return answerRefusal(caller, question) === null;
}

/** A decision that counted, with the request that it ended. */
interface DecisionRow {
  request_id: string;
  resolution: string;
  principal_type: ApprovalPrincipal['type'];
  principal_id: string;
  /** Of the credential or person. */
  name: string | null;
  comment: string | null;
}

const DECISIONS = `
  SELECT d.request_id, d.resolution, d.principal_type, d.principal_id, c.name, d.comment FROM input_decisions d
    JOIN input_requests q ON q.tenant_id = d.tenant_id AND q.request_id = d.request_id AND q.digest = d.digest
    LEFT JOIN credentials c ON c.tenant_id = d.tenant_id AND c.credential_id = d.principal_id
      AND (d.principal_type = 'credential' OR starts_with(d.principal_id, '${PERSON_PREFIX}')) -- the id of an end user may be any text
   WHERE d.tenant_id = $1 AND d.request_id = ANY ($2) ORDER BY d.approval_id`;

/** Who decided: everybody whose decision made the last one count. */
function decidedOf({ ended_at }: RequestSummary, decisions: readonly DecisionRow[]): RequestRecord['decided'] {
  const last = decisions.at(-1);
  if (!last || !ended_at) return undefined;
  const counted = decisions.filter(({ resolution }) => resolution === last.resolution);
  return {
    resolution: last.resolution,
    principals: counted.map(({ principal_type: type, principal_id: id, name }) => ({
      ...{ type, id },
      ...(name !== null && { name }),
    })),
    at: ended_at.toISOString(),
    ...(last.comment !== null && { comment: last.comment }),
  };
}

/** The names of a tenant's credentials and people are not for its end users. */
function shownTo(caller: Caller, decided: RequestRecord['decided']): RequestRecord['decided'] {
  if (!decided || !isLimited(caller)) return decided;
  return { ...decided, principals: decided.principals.map(({ type, id }) => ({ type, id })) };
}

function outcomeOf({ is_affirmative, outcome, error_code, settled_at }: RequestSummary): RequestOutcome | undefined {
  if (!is_affirmative) return undefined;
  if (outcome === null || settled_at === null) return { state: 'pending' };
  return { state: outcome, ...(error_code !== null && { error_code }), at: settled_at.toISOString() };
}

/** Who decided about those of these requests that were decided, by request. */
export async function decisionsOf(
  tx: Tx,
  tenantId: string,
  summaries: readonly RequestSummary[],
): Promise<Map<string, NonNullable<RequestRecord['decided']>>> {
  const over = summaries.filter(({ state }) => state === 'resolved' || state === 'expired');
  if (over.length === 0) return new Map();
  const rows = await tx.query<DecisionRow>(DECISIONS, [tenantId, over.map(({ request_id }) => request_id)]);
  const decided = over.flatMap((summary) => {
    const { request_id } = summary;
    const given = decidedOf(
      summary,
      rows.filter((row) => row.request_id === request_id),
    );
    return given ? [[request_id, given] as const] : [];
  });
  return new Map(decided);
}

/** Characters of a message's text, or of a plan's description, that a record has. */
const ABOUT_CHARS = 200;
const ABOUT = `
  SELECT m.message_id AS id, left((SELECT string_agg(said #>> '{}', E'\\n') FROM ${textsIn('m.parts')}), ${ABOUT_CHARS}) AS about
    FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)
  UNION ALL SELECT p.plan_id, left(p.description, ${ABOUT_CHARS}) FROM plans p WHERE p.tenant_id = $1 AND p.plan_id = ANY ($2)`;

/** How the messages and plans of these requests begin, by their ids. */
async function beginnings(
  tx: Tx,
  tenantId: string,
  summaries: readonly RequestSummary[],
): Promise<Map<string | null, string>> {
  const ids = summaries.map(({ message_id, plan_id }) => message_id ?? plan_id);
  const rows = await tx.query<{ id: string; about: string | null }>(ABOUT, [tenantId, ids]);
  return new Map(rows.map(({ id, about }) => [id, about ?? '']));
}

/** The records of these requests, as the caller sees them, with as much of their content as a page may hold. */
export async function recordsOf(
  tx: Tx,
  caller: Caller,
  summaries: readonly RequestSummary[],
): Promise<RequestRecord[]> {
  const { tenant_id } = caller;
  const ids = summaries.map(({ request_id }) => request_id);
  const asked = new Map((await readPageRequests(tx, tenant_id, ids)).map((row) => [row.request_id, row]));
  const decisions = await decisionsOf(tx, tenant_id, summaries);
  const begins = await beginnings(tx, tenant_id, summaries);
  return summaries.flatMap((summary) => {
    const { request_id, message_id, plan_id, session_id, agent_type, user_id, state } = summary;
    const row = asked.get(request_id);
    if (!row) return [];
    const decided = shownTo(caller, decisions.get(request_id));
    const outcome = outcomeOf(summary);
    return {
      request_id,
      ...(message_id !== null && { message_id }),
      ...(plan_id !== null && { plan_id }),
      session_id,
      ...(agent_type !== null && { agent_type }),
      ...(user_id !== null && { user_id }),
      sent_by: senderOf(summary),
      state: STATES[state],
      input_request: inputRequestOf(row),
      about: begins.get(message_id ?? plan_id) ?? '',
      may_answer: mayAnswer(caller, summary),
      ...(decided && { decided }),
      ...(outcome && { outcome }),
      ...(!row.whole && { truncated: true as const }),
    };
  });
}
