import { toolArguments } from '../../policy/guards/content.js';
import type { Decider, PolicyRequest, Verdict } from '../../policy/policy-request.js';
import { type DecisionEvent, eventsOf, isUndecided, undecidedError } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { AskedRequest } from '../read/rows.js';

/** The request about a tool call that waits, as the policies saw it. */
type ReviewedRequest = Pick<AskedRequest, 'tool' | 'policy_id' | 'guard'> & { policy_request: PolicyRequest | null };

const REQUEST = `
  SELECT tool, policy_request, policy_id, guard FROM input_requests WHERE tenant_id = $1 AND request_id = $2 AND state = 'pending' AND stage = 'tool'`;

/** An edit of a call that is refused: the error for the approver, and the events of the refusal. */
export interface DeniedEdit {
  error: PlatformError;
  events: DecisionEvent[];
}

function nameOf(by: Decider): string {
  return by.source === 'policy' ? `The policy ${by.name}` : `The guard ${by.guard}`;
}

function problemOf(verdict: Verdict, asked: ReviewedRequest): string | null {
  if (verdict.decision === 'allow') return null;
  const { by } = verdict;
  if (verdict.decision === 'deny') return `${nameOf(by)} denies the edited arguments: ${by.reason}`;
  const deciders = [by, ...(verdict.alsoBy ? [verdict.alsoBy] : [])];
  const other = deciders.find((one) =>
    one.source === 'policy' ? one.policy_id !== asked.policy_id : one.guard !== asked.guard,
  );
  return other ? `${nameOf(other)} wants an approval of its own for the edited arguments: ${other.reason}` : null;
}

/**
 * Lets the policies and guards decide about the arguments as an approver edited them: a human may not approve arguments that they deny, or for which a policy
 * or guard that has not asked wants an approval of its own. This runs before the decision's transaction, because an evaluator may be asked over the network;
 * the decision then approves exactly these arguments. It does not count towards a policy's `max_calls`.
 * @param requestId of the open request: the decision must be about this one
 * @returns null if nothing forbids the edit
 * @throws PlatformError SERVICE_UNAVAILABLE while they cannot decide
 */
export async function reviewArguments(
  core: Pick<MessageCore, 'db' | 'policies'>,
  { tenant_id }: MessageRef,
  requestId: string,
  edited: Record<string, unknown>,
): Promise<DeniedEdit | null> {
  const [asked] = await core.db.tenant(tenant_id, (tx) => tx.query<ReviewedRequest>(REQUEST, [tenant_id, requestId]));
  if (!asked) return null; // no tool call waits: the decision itself is refused
  const call: PolicyRequest = {
    ...(asked.policy_request ?? { scope: 'tool', action: 'call' }),
    tool: asked.tool ?? '',
    arguments: edited,
  };
  const verdict = await core.policies.decide(tenant_id, call, toolArguments(edited));
  if (isUndecided(verdict)) throw undecidedError(verdict);
  const problem = problemOf(verdict, asked);
  if (problem === null) return null;
  return { error: new PlatformError('forbidden', `arguments: ${problem}`), events: eventsOf(verdict, call) };
}
