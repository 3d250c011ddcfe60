import type { ToolResult } from '../contracts/api/tools.js';
import { recordEvent } from '../db/events.js';
import type { Db } from '../db/pool.js';
import type { Decider, PolicyRequest, Verdict } from '../policy/types.js';
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

/** The result of a call that a policy or a guard denies. */
export function denial(by: Decider, message = by.reason): ToolResult {
  if (by.source === 'guard') return refusal('GUARD_DENIED', message);
  const denied = refusal('POLICY_DENIED', message);
  return denied.ok ? denied : { ok: false, error: { ...denied.error, policy_id: by.policy_id } };
}

/** Records that a call was denied. */
export async function recordDenial(db: Db, { caller, payload, parent }: ToolRequest, by: Decider): Promise<void> {
  const { tenant_id } = caller;
  const about = { action: 'call', tool: payload.tool, reason: by.reason };
  const session_id = parent?.session_id;
  const context = { tenant_id, severity: 'warning' as const, ...(session_id !== undefined && { session_id }) };
  await db.tenant(tenant_id, (tx) =>
    by.source === 'guard'
      ? recordEvent(tx, context, 'guard.denied', { guard: by.guard, ...about })
      : recordEvent(tx, context, 'policy.denied', { policy_id: by.policy_id, policy_name: by.name, ...about }),
  );
}

/** The verdict, which is a promise only where a webhook evaluator is asked. */
export type ToolVerdict = Verdict | Promise<Verdict>;
