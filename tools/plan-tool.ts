import type { Caller } from '../contracts/api/auth.js';
import { PlanProposal } from '../contracts/api/plans.js';
import type { Db } from '../db/pool.js';
import type { Plans } from '../plans/plans.js';
import { PlatformError } from '../runtime/errors.js';
import type { ToolCaller } from './call-context.js';

/** A call of `plan.create`. */
export interface PlanToolCall {
  caller: ToolCaller;
  /** The session of the dispatch that the call is part of, else the one that it names. */
  session_id: string | undefined;
  /** A repeat with the same key gives the same plan. */
  idempotency_key: string | undefined;
  traceparent: string | undefined;
}

/** Runs the platform tool `plan.create`. @throws PlatformError BAD_REQUEST, and as `Plans.propose` */
export type PlanTool = (call: PlanToolCall, given: object) => Promise<object>;

/** What the agent may do it may do with the credential that it was registered with, or that its token is of. */
async function callerOf(db: Db, { tenant_id, agent_type, instance_id, credential_id }: ToolCaller): Promise<Caller> {
  const claims = { tenant_id, agent_type, scopes: ['read' as const], iat: 0, exp: 0 };
  if (credential_id !== undefined) return { ...claims, sub: credential_id, credential_id };
  const [agent] = await db.tenant(tenant_id, (tx) =>
    tx.query<{ credential_id: string | null }>(
      'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
      [tenant_id, instance_id],
    ),
  );
  const sub = instance_id ?? agent_type;
  return { ...claims, sub, credential_id: agent?.credential_id ?? sub };
}

/** The platform tool by which an agent proposes a plan; somebody with the scope `admin` approves it. */
export function createPlanTool(db: Db, plans: Pick<Plans, 'propose'>): PlanTool {
  return async ({ caller, session_id, idempotency_key, traceparent }, given) => {
    const { data: proposal, error } = PlanProposal.safeParse(given);
    if (!proposal) {
      const [issue] = error.issues;
      throw new PlatformError('BAD_REQUEST', `arguments: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim());
    }
    if (session_id === undefined)
      throw new PlatformError('BAD_REQUEST', 'session_id: a plan belongs to a session; name one, or a dispatch of yours.');
    const { steps: _steps, decisions: _decisions, ...plan } = await plans.propose(await callerOf(db, caller), {
      ...proposal,
      session_id,
      ...(idempotency_key !== undefined && { proposal_key: `${caller.key}\n${idempotency_key}` }),
      ...(traceparent !== undefined && { traceparent }),
    });
    return plan;
  };
}
