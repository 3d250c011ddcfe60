import { PlansOperations } from '../generated/operations.js';
import type { PlansGetByIdResponse } from '../generated/schema-types.js';
import { untilSettled, type WaitOptions } from './until-settled.js';

type Plan = PlansGetByIdResponse['plan'];

/** `/plans/*`, and a wait for a plan. */
export class WaitingPlans extends PlansOperations {
  /**
   * Polls the plan until it has ended, or by default until it has settled: also when it waits for its approval, or when steps wait for a human
   * and none runs. Temporary failures of the platform are passed over.
   * @throws ApiError with code `REQUEST_TIMEOUT` when that has not happened within `timeoutMs`
   */
  waitFor(planId: string, options: WaitOptions = {}): Promise<Plan> {
    const read = async (call: WaitOptions) => (await this.getById({ planId }, call)).plan;
    const hasSettled = (plan: Plan) => hasEnded(plan) || (options.until !== 'terminal' && waitsForHumans(plan));
    return untilSettled(`plan ${planId}`, read, hasSettled, options);
  }
}

const hasEnded = ({ state }: Plan) => state !== 'proposed' && state !== 'running';

function waitsForHumans({ state, progress }: Plan): boolean {
  return state === 'proposed' || (progress['input-required'] > 0 && progress.running === 0);
}
