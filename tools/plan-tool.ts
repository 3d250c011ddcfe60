import type { Caller } from '../contracts/api/auth.js';
import { PlanProposal } from '../contracts/api/plans.js';
import type { Plans } from '../plans/plans.js';
import { PlatformError, parsedAs } from '../runtime/errors.js';
import { boundKeyOf } from './bound-key.js';
import type { ToolCaller } from './call-context.js';
import type { TracedRequest } from './call-span.js';

/** Runs the platform tool `plan.create`. @throws PlatformError BAD_REQUEST, and as `Plans.propose` */
export type PlanTool = (request: TracedRequest) => Promise<object>;

/** The agent as the creator of a plan: the claims of its token. */
function creatorOf({ tenant_id, agent_type, instance_id, token }: ToolCaller): Caller {
  const { credential_id = '', sub = credential_id } = token ?? {};
  return { tenant_id, agent_type, sub: instance_id ?? sub, credential_id, scopes: ['read'], iat: 0, exp: 0 };
}

/** The platform tool by which an agent proposes a plan; somebody with the scope `admin` approves it. */
export function createPlanTool(plans: Pick<Plans, 'propose'>): PlanTool {
  return async ({ caller, payload, parent, span: { traceparent } }) => {
    const proposal = parsedAs(PlanProposal, payload.arguments, 'arguments: ');
    const session_id = parent?.session_id ?? payload.session_id;
    if (!session_id)
      throw new PlatformError('BAD_REQUEST', 'A plan belongs to a session: name a dispatch of yours, or a session_id.');
    // A repeat of the call, after a crash for example, gives the same plan.
    const proposal_key = boundKeyOf({ caller, payload, parent });
    const {
      steps: _steps,
      decisions: _decisions,
      ...plan
    } = await plans.propose(creatorOf(caller), {
      ...proposal,
      session_id,
      ...(proposal_key && { proposal_key }),
      traceparent,
    });
    return plan;
  };
}
