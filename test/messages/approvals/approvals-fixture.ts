import { randomUUID } from 'node:crypto';
import type { Caller } from '../../../contracts/api/auth.js';
import { PolicyResponse } from '../../../contracts/api/policies/policies.js';
import type { Scope } from '../../../contracts/primitives.js';
import { askInput, type NewInputRequest } from '../../../messages/input/ask.js';
import { issueCallbackTokens } from '../../../messages/input/callback-tokens.js';
import { digestOf } from '../../../messages/input/digest.js';
import { nextStep } from '../../../messages/supervise/next-step.js';
import type { ApprovalTerms } from '../../../policy/policy-request.js';
import { newId } from '../../../runtime/ids.js';
import { joinOnRecord } from '../../api/moving.js';
import type { ServedApi } from '../../api/served-api.js';
import type { ApiClient } from '../../setup/platform/api-client.js';

/** Who makes the calls that are asked about. */
export const EXECUTOR = { type: 'agent', id: 'bank' } as const;

const TERMS: ApprovalTerms = {
  approvers: [],
  quorum: 1,
  timeout_seconds: 3_600,
  allow_self: true,
  on_reject: 'fail',
};

/** What an approval of `terms` is as the `evaluator` of a policy. */
const evaluatorOf = ({ approvers: _, ...approval }: Partial<ApprovalTerms>) => ({ approval });

/** An agent on the record of an API, and messages that wait for a human. */
export async function approvalsFixture(api: ServedApi) {
  await joinOnRecord(api, 'worker-1');
  const ref = (message_id: string) => ({ tenant_id: api.tenantId, message_id });

  /** A policy that asks a human about every message of a type. */
  async function policy(agentType: string, terms: Partial<ApprovalTerms> = {}): Promise<{ policy_id: string }> {
    const body = {
      scope: 'admission',
      name: `ask about ${agentType}`,
      decision: 'require_approval',
      match: { agent_types: [agentType] },
      reason: 'People look at these.',
      approvers: terms.approvers ?? [],
      evaluator: evaluatorOf(terms),
    };
    const answer = await api.client.ok('/policies/create_policy', body, PolicyResponse);
    return answer.policy;
  }

  /** An agent on the record, the only one of its type and of that name, and a policy that asks about every message to it. */
  async function heldType(terms: Partial<ApprovalTerms> = {}): Promise<{ agentType: string }> {
    const agentType = `held-${randomUUID().slice(0, 8)}`;
    await api.database.query(
      `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions, mesh_id, connection_epoch)
         VALUES ($1, $2, $2, 'connected', 'available', 0, 'mesh_test', 1)`,
      [api.tenantId, agentType],
    );
    await policy(agentType, terms);
    return { agentType };
  }

  /** A message that a policy of its own asks about, by this sender. */
  async function held(terms: Partial<ApprovalTerms> = {}, sender: ApiClient = api.client): Promise<string> {
    const { agentType } = await heldType(terms);
    const task = await sender.send('pay', { metadata: { agent_type: agentType }, blocking: false });
    return task.id;
  }

  /** A message at work, a tool call of which waits for a human. */
  async function calling(
    args: Record<string, unknown>,
    terms: Partial<ApprovalTerms> = {},
    tool = 'pay',
  ): Promise<{ id: string; dispatch_id: string; request: NewInputRequest }> {
    const task = await api.client.send('go', { metadata: { agent_type: 'worker' }, blocking: false });
    const step = await nextStep(api.core, ref(task.id));
    if (step?.kind !== 'dispatch') throw new Error(`no dispatch: ${step?.kind}`);
    const dispatch_id = step.dispatch_id;
    await api.database.query("UPDATE dispatches SET state = 'sent', sent_at = now() WHERE dispatch_id = $1", [
      dispatch_id,
    ]);
    const request: NewInputRequest = {
      request_id: newId('req'),
      kind: 'approval',
      source: 'policy',
      stage: 'tool',
      title: `May ${tool} be called?`,
      prompt: '',
      action: 'call',
      tool,
      arguments: args,
      executor: EXECUTOR,
      policy_id: 'pol_1',
      policy_name: 'payments',
      terms: { ...TERMS, ...terms },
      digest: digestOf({ tool, arguments: args, executor: EXECUTOR }),
    };
    await api.db.tenant(api.tenantId, (tx) => askInput(tx, ref(task.id), request));
    return { id: task.id, dispatch_id, request };
  }

  /** A token that answers the open request of a message, as a delivery carries it. */
  async function tokenFor(
    message_id: string,
    ruleId = 'rule_1',
    writers: string[] = [],
    destination = 'https://a.example',
  ): Promise<string> {
    const [request] = await api.database.query<{ request_id: string; digest: string; expires_at: Date }>(
      `SELECT request_id, digest, expires_at FROM input_requests WHERE message_id = $1 ORDER BY requested_at DESC LIMIT 1`,
      [message_id],
    );
    if (!request) throw new Error('nothing is asked about the message');
    const purpose = { ...ref(message_id), plan_id: null, ...request, rule_id: ruleId, writers, destination };
    const [token] = await api.db.tenant(api.tenantId, (tx) => issueCallbackTokens(tx, [purpose]));
    return token as string;
  }

  const resolve = (client: ApiClient, id: string, body: object) => client.post(`/messages/${id}/resolve`, body);
  /** `200 working`, or `409 ALREADY_RESOLVED`. */
  async function outcome(client: ApiClient, id: string, body: object): Promise<string> {
    const { status, body: answer } = await resolve(client, id, body);
    const { new_state, code } = answer as { new_state?: string; code?: string };
    return `${status} ${new_state ?? code}`;
  }
  /** The same without an access token. */
  async function byToken(id: string, body: object): Promise<string> {
    const answer = await api.client.raw(`/messages/${id}/resolve`, JSON.stringify(body), {
      'content-type': 'application/json',
    });
    const { new_state, code } = answer.body as { new_state?: string; code?: string };
    return `${answer.status} ${new_state ?? code}`;
  }

  const events = (id: string, type = '%') =>
    api.database.query<{ event_type: string; payload: Record<string, unknown> }>(
      `SELECT event_type, payload FROM events WHERE payload->>'message_id' = $1 AND event_type LIKE $2 ORDER BY event_id`,
      [id, type],
    );

  return {
    api,
    ref,
    held,
    heldType,
    calling,
    tokenFor,
    outcome,
    byToken,
    events,
    /** Another caller of the tenant. */
    caller: (...scopes: Scope[]) => api.clientOf(api.tenantId, scopes),
    callerWith: async (...scopes: Scope[]) => {
      const credential = await api.credentialOf(api.tenantId, scopes);
      const claims: Caller = {
        ...{ tenant_id: api.tenantId, agent_type: 'credential', scopes, iat: 0, exp: 0 },
        ...{ sub: credential.client_id, credential_id: credential.client_id },
      };
      return { claims, id: credential.client_id };
    },
    step: (id: string, afterMs = 0) => nextStep(api.core, ref(id), () => new Date(Date.now() + afterMs)),
  };
}
