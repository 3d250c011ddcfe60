import { cancelMessage, sessionDeps } from '../messages/cancel.js';
import type { MessageCore } from '../messages/core.js';
import type { Dispatches, DispatchRef, LossCode } from '../messages/dispatch/dispatches.js';
import { nextStep } from '../messages/supervise/next-step.js';
import { isTenantBusy, PlatformError } from '../runtime/errors.js';
import { expireIfIdle } from '../sessions/session-end.js';
import type { MessageInput, SessionInput } from '../workflows/definitions.js';

export type RecordActivities = ReturnType<typeof createRecordActivities>;

/** Local activities over the functions of `messages/` and `sessions/`: one short, idempotent transaction each. */
export function createRecordActivities(core: MessageCore, dispatches: Dispatches) {
  return {
    nextStep: (input: MessageInput) => nextStep(core, input),
    release: async (ref: DispatchRef, reason: string): Promise<void> => {
      await dispatches.release(ref, reason);
    },
    /** A node that lives still has what it sent: then this changes nothing, and the dispatch is adopted. */
    failAsLost: async (ref: DispatchRef, code: LossCode): Promise<void> => {
      await dispatches.failAsLost(ref, code, { unlessOwnerLives: code === 'AGENT_DISCONNECTED' });
    },
    cancelByOperator: async (input: MessageInput): Promise<void> => {
      await cancelMessage(core, input, 'canceled by an operator').catch((error: unknown) => {
        if (isTenantBusy(error) || !(error instanceof PlatformError && error.statusCode < 500)) throw error;
      });
    },
    expireIfIdle: (input: SessionInput) => expireIfIdle(sessionDeps(core), input),
  };
}
