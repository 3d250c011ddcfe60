import type { Part } from '../contracts/a2a/parts.js';
import type { BacktestSample } from '../contracts/api/policies/backtest.js';
import type { PolicyScope } from '../contracts/api/policies/policies.js';
import { policyRequest, senderFacts } from '../messages/policy-requests.js';
import { createRequest } from '../plans/approvals/plan-policy.js';
import { creatorOf, type PlanRow, type StepRow } from '../plans/plan-rows.js';
import type { PolicyRequest } from '../policy/policy-request.js';
import type { IdPrefix } from '../runtime/ids.js';

/** An action of the past, as far as the record has it. */
export interface PastRequest extends Pick<BacktestSample, 'message_id' | 'request_id' | 'plan_id'> {
  at: Date;
  request: PolicyRequest;
  /** Its arguments are on the record. */
  isStored: boolean;
}

/** A row of a source. `key`: its place among all, which rises with the time. */
export type PastRow = Record<string, unknown> & { key: string; at: Date };

/** Where the record has the actions of a scope. */
interface Source {
  /** Of the ids by which it is read. */
  prefix: IdPrefix;
  /** The newest first: $1 tenant, $2 the least id, $3 the bound of the keys, $4 how many. */
  select: string;
  read(row: PastRow): PastRequest;
}

interface MessageRow extends PastRow {
  message_id: string;
  session_id: string;
  parts: Part[];
  metadata: Record<string, unknown>;
  agent_type: string | null;
  instance_id: string | null;
  skill_id: string | null;
  user_id: string | null;
  credential_id: string;
  sender_agent_type: string | null;
  scopes: string[];
}

type Agent = Record<'agent_type' | 'instance_id' | 'skill_id', string | null>;

/** What is known of an agent. */
function agentOf({ agent_type, instance_id, skill_id }: Agent): NonNullable<PolicyRequest['agent']> {
  return {
    ...(agent_type !== null && { agent_type }),
    ...(instance_id !== null && { instance_id }),
    ...(skill_id !== null && { skill_id }),
  };
}

function sessionOf(session_id: string, user_id: string | null): NonNullable<PolicyRequest['session']> {
  return { session_id, ...(user_id !== null && { user_id }) };
}

const SENT = `m.message_id, m.session_id, m.parts, m.metadata, s.user_id, m.credential_id, m.sender_agent_type, coalesce(c.scopes, '{}') AS scopes`;
const WITH_SENDER = `
  LEFT JOIN sessions s ON s.tenant_id = m.tenant_id AND s.session_id = m.session_id
  LEFT JOIN credentials c ON c.tenant_id = m.tenant_id AND c.credential_id = m.credential_id`;

const MESSAGES = `
  SELECT m.message_id AS key, m.created_at AS at, ${SENT}, coalesce(m.want_agent_type, m.agent_type) AS agent_type,
         coalesce(m.metadata ->> 'instance_id', (SELECT a.instance_id FROM agents a WHERE a.tenant_id = $1
           AND a.instance_id = m.metadata ->> 'target_agent')) AS instance_id, m.metadata ->> 'skill_id' AS skill_id
    FROM messages m ${WITH_SENDER}
   WHERE m.tenant_id = $1 AND m.message_id >= $2 AND m.message_id < $3 ORDER BY m.message_id DESC LIMIT $4`;
const DISPATCHES = `
  SELECT d.dispatch_id AS key, d.created_at AS at, ${SENT}, d.agent_type, d.instance_id, d.skill_id
    FROM dispatches d JOIN messages m ON m.tenant_id = d.tenant_id AND m.message_id = d.message_id ${WITH_SENDER}
   WHERE d.tenant_id = $1 AND d.dispatch_id >= $2 AND d.dispatch_id < $3 ORDER BY d.dispatch_id DESC LIMIT $4`;

function messageSource(scope: 'admission' | 'dispatch', prefix: IdPrefix, select: string): Source {
  return {
    prefix,
    select,
    read: (row) => {
      const message = row as MessageRow;
      const { at, message_id, parts, metadata, session_id, user_id } = message;
      const agent = agentOf(message);
      const [session, token] = [sessionOf(session_id, user_id), senderFacts(message)];
      const request = policyRequest(scope, { message_id, parts, metadata, agent, session, token });
      return { at, message_id, request, isStored: true };
    },
  };
}

/** Calls of one message are next to each other: a key is the message's id and that of the call. */
const ofMessages = (table: string, id: string) =>
  `${table}.tenant_id = $1 AND ${table}.message_id >= $2 AND (${table}.message_id, ${id}) < (split_part($3, ' ', 1), split_part($3, ' ', 2))`;
/** Calls that a person was asked about are on the record with their arguments, all others as spans of traces. */
const CALLS = `
  SELECT * FROM (
    (SELECT q.message_id || ' ' || q.request_id AS key, q.requested_at AS at, q.message_id, q.request_id, q.session_id, q.tool, q.arguments,
            q.policy_request, NULL AS agent_type, NULL AS instance_id
       FROM input_requests q WHERE ${ofMessages('q', 'q.request_id')} AND q.stage = 'tool'
      ORDER BY q.message_id DESC, q.request_id DESC LIMIT $4)
    UNION ALL
    (SELECT t.message_id || ' ' || t.span_id, t.started_at, t.message_id, NULL, m.session_id, t.attributes ->> 'gen_ai.tool.name', NULL, NULL,
            t.attributes ->> 'gen_ai.agent.name', t.attributes ->> 'gen_ai.agent.id'
       FROM trace_spans t JOIN messages m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
      WHERE ${ofMessages('t', 't.span_id')} AND t.attributes ->> 'gen_ai.operation.name' = 'execute_tool'
        AND NOT EXISTS (SELECT 1 FROM input_requests q WHERE q.tenant_id = $1 AND q.message_id = t.message_id AND q.stage = 'tool'
              AND q.tool = t.attributes ->> 'gen_ai.tool.name' AND q.requested_at BETWEEN t.started_at AND t.ended_at)
      ORDER BY t.message_id DESC, t.span_id DESC LIMIT $4)) calls
   ORDER BY key COLLATE "C" DESC LIMIT $4`;

interface CallRow extends PastRow {
  message_id: string;
  request_id: string | null;
  session_id: string;
  tool: string;
  arguments: Record<string, unknown> | null;
  policy_request: PolicyRequest | null;
  agent_type: string | null;
  instance_id: string | null;
}

const calls: Source = {
  prefix: 'msg',
  select: CALLS,
  read: (row) => {
    const { at, message_id, request_id, session_id, tool, arguments: given, policy_request, ...agent } = row as CallRow;
    const asked = policy_request ?? { agent: agentOf({ ...agent, skill_id: null }), session: { session_id } };
    const request: PolicyRequest = {
      ...{ ...asked, scope: 'tool', action: 'call', tool },
      ...(given && { arguments: given }),
    };
    return { at, message_id, ...(request_id !== null && { request_id }), request, isStored: given !== null };
  },
};

const SESSIONS = `
  SELECT s.session_id AS key, s.created_at AS at, s.session_id, s.user_id, s.agent_type, s.instance_id, s.metadata
    FROM sessions s WHERE s.tenant_id = $1 AND s.session_id >= $2 AND s.session_id < $3 ORDER BY s.session_id DESC LIMIT $4`;

interface SessionRow extends PastRow, Omit<Agent, 'skill_id'> {
  session_id: string;
  user_id: string | null;
  metadata: Record<string, unknown>;
}

/** The record does not say with which token a session was opened. */
const sessions: Source = {
  prefix: 'ses',
  select: SESSIONS,
  read: (row) => {
    const { at, session_id, user_id, metadata, agent_type, instance_id } = row as SessionRow;
    const agent = agentOf({ agent_type, instance_id, skill_id: null });
    const about = { arguments: { metadata }, agent, session: sessionOf(session_id, user_id) };
    return { at, request: { scope: 'session', action: 'init', ...about }, isStored: true };
  },
};

const PLANS = `
  SELECT p.plan_id AS key, p.created_at AS at, p.*,
         (SELECT json_agg(s ORDER BY s.place) FROM plan_steps s WHERE s.tenant_id = p.tenant_id AND s.plan_id = p.plan_id) AS steps
    FROM plans p WHERE p.tenant_id = $1 AND p.plan_id >= $2 AND p.plan_id < $3 ORDER BY p.plan_id DESC LIMIT $4`;

/** The erasure of a step's message empties the texts of its plan. */
const plans: Source = {
  prefix: 'plan',
  select: PLANS,
  read: (row) => {
    const { at, steps, ...plan } = row as unknown as PastRow & PlanRow & { steps: StepRow[] };
    const request = createRequest(creatorOf(plan), plan, steps);
    return { at, plan_id: plan.plan_id, request, isStored: plan.description !== '' };
  },
};

/** The actions that the record has of each scope: `send`, `dispatch`, `call`, `init` and `create`. */
export const SOURCES: Readonly<Record<PolicyScope, Source>> = {
  admission: messageSource('admission', 'msg', MESSAGES),
  dispatch: messageSource('dispatch', 'dsp', DISPATCHES),
  tool: calls,
  session: sessions,
  plan: plans,
};
