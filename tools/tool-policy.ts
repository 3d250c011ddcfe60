import type { ToolResult } from '../contracts/api/tools.js';
import type { Db } from '../db/pool.js';
import { toolArguments } from '../policy/guards/content.js';
import type { GuardedContent } from '../policy/guards/types.js';
import type { Decider, PolicyRequest, Verdict } from '../policy/types.js';
import { eventsOf } from '../policy/verdict.js';
import type { Chain } from './call-context.js';
import type { ToolRequest } from './tool-calls.js';
import { refusal } from './tool-result.js';

/** What policies are asked about a call. `agent`: the one that calls. */
export function policyRequestOf({ caller, payload, parent }: ToolRequest): PolicyRequest {
  const { agent_type, instance_id, token } = caller;
  const skill_id = payload.target?.skill_id;
  const session_id = parent?.session_id ?? payload.session_id ?? undefined;
  return {
    scope: 'tool',
    action: 'call',
    tool: payload.tool,
    arguments: payload.arguments,
    agent: { agent_type, ...(instance_id !== undefined && { instance_id }), ...(skill_id !== undefined && { skill_id }) },
    ...(session_id !== undefined && { session: { session_id } }),
    ...(token && { token }),
  };
}

/** What guards inspect of a call. @param chain the calls that wait for it */
export function guardedArguments({ payload }: ToolRequest, chain: Chain): GuardedContent {
  return toolArguments(payload.arguments, { hops: chain.length + 1 });
}

/** The result of a call that a policy or a guard denies. */
export function denialOf(by: Decider, message = by.reason, retryable = false): ToolResult {
  if (by.source === 'guard') return refusal('GUARD_DENIED', message, retryable);
  const code = 'POLICY_DENIED';
  return { ok: false, error: { code, message, retryable, ...(by.policy_id !== '' && { policy_id: by.policy_id }) } };
}

/** Records what was decided about a call: that it is denied, and the policies that only record. Nothing is written about any other. */
export async function recordVerdict(db: Db, request: ToolRequest, verdict: Verdict): Promise<void> {
  const { caller, payload, parent, traceparent } = request;
  const events = eventsOf(verdict, { action: 'call', tool: payload.tool });
  if (events.length === 0) return;
  const { tenant_id } = caller;
  const [, traceId = null] = (traceparent ?? parent?.traceparent ?? '').split('-');
  const values = [tenant_id, parent?.session_id ?? '', traceId, JSON.stringify(events)];
  await db.tenant(tenant_id, (tx) => tx.query('SELECT record_decision_events($1, $2, $3, $4)', values));
}
