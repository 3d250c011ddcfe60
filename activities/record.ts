import { cancelMessage, sessionDeps } from '../messages/cancel.js';
import type { MessageCore } from '../messages/core.js';
import type { Dispatches, DispatchRef, LossCode } from '../messages/dispatch/dispatches.js';
import { nextStep } from '../messages/supervise/next-step.js';
import type { Step } from '../messages/supervise/step.js';
import { PlatformError } from '../runtime/errors.js';
import { expireIfIdle, type IdleCheck } from '../sessions/session-end.js';
import type { MessageInput, SessionInput } from '../workflows/definitions.js';

/** Local activities: one short, idempotent transaction each. */
export interface RecordActivities {
  nextStep(input: MessageInput): Promise<Step | null>;
  release(ref: DispatchRef, reason: string): Promise<void>;
  /** A node that lives still has what it sent: then this changes nothing, and the dispatch is adopted. */
  failAsLost(ref: DispatchRef, code: LossCode): Promise<void>;
  cancelByOperator(input: MessageInput): Promise<void>;
  expireIfIdle(input: SessionInput): Promise<IdleCheck>;
}

/** The record's activities over the functions of `messages/`. */
export function createRecordActivities(core: MessageCore, dispatches: Dispatches): RecordActivities {
  return {
    nextStep: (input) => nextStep(core, input),
    release: async (ref, reason) => {
      await dispatches.release(ref, reason);
    },
    failAsLost: async (ref, code) => {
      await dispatches.failAsLost(ref, code, { unlessOwnerLives: code === 'AGENT_DISCONNECTED' });
    },
    cancelByOperator: async (input) => {
      await cancelMessage(core, input, 'canceled by an operator').catch((error: unknown) => {
        if (!(error instanceof PlatformError && error.statusCode < 500)) throw error;
      });
    },
    expireIfIdle: (input) => expireIfIdle(sessionDeps(core), input),
  };
}
