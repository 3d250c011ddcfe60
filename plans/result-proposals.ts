import { PlanProposal } from '../contracts/api/plans.js';
import type { Db } from '../db/pool.js';
import type { ProposePlan } from '../messages/runner/plan-proposals.js';
import { PlatformError, parsedAs } from '../runtime/errors.js';
import { TooManyPlans } from './create-plan.js';
import type { Plans } from './plans.js';

/** The plans that agents propose in their results: in the session of the message, with the credential that the agent was registered with. */
export function createResultProposals(db: Db, plans: Pick<Plans, 'propose'>): ProposePlan {
  return async ({ tenant_id, session_id, dispatch_id, agent_type, instance_id, payload }, given) => {
    const proposal = parsedAs(PlanProposal, given);
    const [agent] = await db.tenant(tenant_id, (tx) =>
      tx.query<{ credential_id: string | null }>(
        'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
        [tenant_id, instance_id],
      ),
    );
    const claims = { tenant_id, agent_type, scopes: ['read' as const], iat: 0, exp: 0 };
    const caller = { ...claims, sub: instance_id, credential_id: agent?.credential_id ?? instance_id };
    try {
      const { traceparent } = payload.session_context.propagation_headers;
      const proposal_key = `result\n${dispatch_id}`;
      await plans.propose(caller, { ...proposal, session_id, proposal_key, traceparent });
    } catch (error) {
      // A result does not wait for people: it would be repeated for as long as no plan ends.
      throw error instanceof TooManyPlans ? new PlatformError('CONFLICT', error.message) : error;
    }
  };
}
