import { z } from 'zod';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { Principal } from '../input/principals.js';
import { resolveAs } from '../input/resolve.js';

/** The payload of the signal `resolve`. */
const OperatorDecision = z.strictObject({
  request_id: z.string().max(128),
  resolution: z.string().max(64),
  comment: z.string().max(4_096).optional(),
});

/** Everybody who may write to the Temporal namespace. Together they have one vote towards a quorum; only Temporal knows who it was. */
const OPERATOR: Principal = {
  type: 'temporal',
  id: 'signal',
  voter: 'temporal:signal',
  mayAnswer: async (_tx, _asker, { kind }) => {
    if (kind === 'form') throw new PlatformError('forbidden', 'A form cannot be filled in by a signal.');
    return [];
  },
};

/**
 * Takes a decision that an operator has sent to the workflow of a message. One that is not allowed or not valid changes nothing; the log says why.
 * @throws PlatformError SERVICE_UNAVAILABLE or RATE_LIMITED: the signal is obeyed later
 */
export async function resolveByOperator(core: MessageCore, ref: MessageRef, sent: unknown): Promise<void> {
  const { tenant_id, message_id } = ref;
  const refuse = (why: string): void =>
    core.log.warn({ tenant_id, message_id, why }, 'signal `resolve` was not obeyed');
  if (!core.limits.decidesBySignal) return refuse('FLEET_TEMPORAL_RESOLVE is off.');
  const decision = OperatorDecision.safeParse(sent);
  if (!decision.success) return refuse(z.prettifyError(decision.error));
  try {
    await resolveAs(core, ref, decision.data, async () => ({ principal: OPERATOR }));
  } catch (error) {
    if (!(error instanceof PlatformError) || error.statusCode === 429 || error.statusCode >= 500) throw error;
    refuse(error.message);
  }
}
