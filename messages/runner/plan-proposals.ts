import { isTransient, PlatformError } from '../../runtime/errors.js';
import type { AnswerOrFailure, OpenDispatch } from '../dispatch/dispatches.js';

/**
 * Writes the plan that an agent proposes in a result; a repeat for the same dispatch gives the same plan.
 * @param proposal as the agent sent it
 * @throws PlatformError when the proposal is not valid or refused
 */
export type ProposePlan = (
  dispatch: Pick<OpenDispatch, 'tenant_id' | 'session_id' | 'dispatch_id' | 'agent_type' | 'instance_id' | 'payload'>,
  proposal: unknown,
) => Promise<void>;

/**
 * Writes the plan that a result proposes, before the result is recorded: a crash in between leaves a proposal that nobody has to approve.
 * @returns the result; a failure if the proposal is refused, without the output if that is held
 * @throws errors after which a repeat may succeed
 */
export async function withProposal(
  propose: ProposePlan,
  dispatch: OpenDispatch,
  result: AnswerOrFailure,
): Promise<AnswerOrFailure> {
  try {
    await propose(dispatch, result.plan_proposal);
    return result;
  } catch (error) {
    if (!(error instanceof PlatformError) || isTransient(error)) throw error;
    const failure = { code: 'HANDLER_ERROR', message: `plan_proposal: ${error.message}` };
    const { held, status_message, artifacts, ...rest } = result;
    const output = held
      ? { artifacts: [] }
      : { ...(artifacts && { artifacts }), ...(status_message && { status_message }) };
    return { ...rest, ...output, state: 'failed', error: failure };
  }
}
