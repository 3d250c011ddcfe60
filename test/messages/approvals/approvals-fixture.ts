import { randomUUID } from 'node:crypto';
import type { Caller } from '../../../contracts/api/auth.js';
import { GetApprovalsResponse } from '../../../contracts/api/policies/approvals.js';
import { PolicyResponse } from '../../../contracts/api/policies/policies.js';
import type { Scope } from '../../../contracts/primitives.js';
import { digestOf } from '../../../messages/digest.js';
import { askInput, type NewInputRequest } from '../../../messages/input/ask.js';
import { issueCallbackTokens, type TokenPurpose } from '../../../messages/input/callback-tokens.js';
import type { ApprovalTerms } from '../../../policy/policy-request.js';
import { newId } from '../../../runtime/ids.js';
import { joinOnRecord } from '../../api/moving.js';
import type { ServedApi } from '../../api/served-api.js';
import { insertAgent } from '../../setup/core.js';
import { type Answer, ApiClient } from '../../setup/platform/api-client.js';
import { lookAt } from '../../setup/take.js';

/** Who makes the calls that are asked about. */
export const EXECUTOR = { type: 'agent', id: 'bank' } as const;

const TERMS: ApprovalTerms = {
  approvers: [],
  quorum: 1,
  timeout_seconds: 3_600,
  allow_self: true,
  on_reject: 'fail',
};

/** `200 working`, or `409 ALREADY_RESOLVED`. */
function outcomeOf({ status, body }: Answer): string {
  const { new_state, code } = body as { new_state?: string; code?: string };
  return `${status} ${new_state ?? code}`;
}

/** Decisions about the messages and plans of an API, by whoever may make them. */
export function decisions(api: ServedApi) {
  return {
    /** A caller's answer. */
    outcome: async (client: ApiClient, id: string, body: object) =>
      outcomeOf(await client.post(`/messages/${id}/resolve`, body)),
    /** The same without an access token. */
    byToken: async (id: string, body: object) =>
      outcomeOf(
        await api.client.raw(`/messages/${id}/resolve`, JSON.stringify(body), { 'content-type': 'application/json' }),
      ),
    /** A token that answers the open request of a message or plan, as a delivery carries it. */
    tokenFor: async (
      id: string,
      rule_id = 'rule_1',
      writers: string[] = [],
      destination = 'https://a.example',
    ): Promise<string> => {
      const [request] = await api.database.query<Omit<TokenPurpose, 'rule_id' | 'writers' | 'destination'>>(
        `SELECT tenant_id, message_id, plan_id, request_id, digest, expires_at FROM input_requests
          WHERE message_id = $1 OR plan_id = $1 ORDER BY requested_at DESC LIMIT 1`,
        [id],
      );
      if (!request) throw new Error(`nothing is asked about ${id}`);
      const purpose = { ...request, rule_id, writers, destination } as TokenPurpose;
      const [token] = await api.db.tenant(api.tenantId, (tx) => issueCallbackTokens(tx, [purpose]));
      return token as string;
    },
    /** The audit trail of a message or plan. */
    approvalsOf: async (subject: { message_id: string } | { plan_id: string }, client = api.client) =>
      (await client.ok('/messages/get_approvals', subject, GetApprovalsResponse)).approvals,
    /** Another caller of the tenant. */
    caller: (...scopes: Scope[]) => api.clientOf(api.tenantId, scopes),
    /** The same with its credential. */
    person: async (...scopes: Scope[]) => {
      const credential = await api.credentialOf(api.tenantId, scopes);
      const id = credential.client_id;
      const client = new ApiClient({ devJson: () => ({ base_url: api.baseUrl, ...credential }) }, credential);
      const token = { agent_type: 'credential', sub: id, credential_id: id, iat: 0, exp: 0 };
      const claims: Caller = { tenant_id: api.tenantId, scopes, ...token };
      return { id, client, claims };
    },
  };
}

/** An agent on the record of an API, and messages that wait for a human. */
export async function approvalsFixture(api: ServedApi) {
  await joinOnRecord(api, 'worker-1');
  const ref = (message_id: string) => ({ tenant_id: api.tenantId, message_id });
  const step = (id: string, afterMs = 0) => lookAt(api.core, ref(id), { now: () => new Date(Date.now() + afterMs) });

  /** An agent on the record, the only one of its type and of that name, and a policy that asks a human about every message to it. */
  async function heldType(terms: Partial<ApprovalTerms> = {}): Promise<{ agentType: string }> {
    const agentType = `held-${randomUUID().slice(0, 8)}`;
    const agent = { instance_id: agentType, agent_type: agentType, mesh_id: 'mesh_test', connection_epoch: 1 };
    await insertAgent(api.database, { tenant_id: api.tenantId, ...agent });
    const { approvers = [], ...approval } = terms;
    const body = {
      ...{ scope: 'admission', name: `ask about ${agentType}`, decision: 'require_approval' },
      ...{ match: { agent_types: [agentType] }, reason: 'People look at these.', approvers, evaluator: { approval } },
    };
    await api.client.ok('/policies/create_policy', body, PolicyResponse);
    return { agentType };
  }

  /** A message that a policy of its own asks about, by this sender. */
  async function held(terms: Partial<ApprovalTerms> = {}, sender: ApiClient = api.client): Promise<string> {
    const { agentType } = await heldType(terms);
    return (await sender.send('pay', { metadata: { agent_type: agentType }, blocking: false })).id;
  }

  /** A message to the agent. */
  async function sent(text = 'hi', metadata: object = {}): Promise<string> {
    return (await api.client.send(text, { metadata: { agent_type: 'worker', ...metadata }, blocking: false })).id;
  }

  /** A message at work, a tool call of which waits for a human. */
  async function calling(
    args: Record<string, unknown>,
    terms: Partial<ApprovalTerms> = {},
    tool = 'pay',
  ): Promise<{ id: string; dispatch_id: string; request: NewInputRequest }> {
    const id = await sent('go');
    const next = await step(id);
    if (!next?.dispatch_id) throw new Error(`no dispatch: ${next?.kind}`);
    const { dispatch_id } = next;
    const about = { tool, arguments: args, executor: EXECUTOR };
    const request: NewInputRequest = {
      ...{ request_id: newId('req'), kind: 'approval', source: 'policy', stage: 'tool', action: 'call' },
      ...{ title: `May ${tool} be called?`, prompt: '', policy_id: 'pol_1', policy_name: 'payments' },
      ...{ ...about, terms: { ...TERMS, ...terms }, digest: digestOf(about) },
    };
    await api.db.tenant(api.tenantId, (tx) => askInput(tx, ref(id), request));
    return { id, dispatch_id, request };
  }

  const events = (id: string, type = '%') =>
    api.database.query<{ event_type: string; payload: Record<string, unknown> }>(
      `SELECT event_type, payload FROM events WHERE payload->>'message_id' = $1 AND event_type LIKE $2 ORDER BY event_id`,
      [id, type],
    );

  return { api, ref, held, heldType, sent, calling, events, step, ...decisions(api) };
}
