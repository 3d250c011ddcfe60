import type { MessageInput, SessionInput } from '../contracts/workflows.js';
import { cancelIfRunning, sessionDeps } from '../messages/cancel.js';
import type { MessageCore } from '../messages/core.js';
import { resolveByOperator } from '../messages/supervise/by-operator.js';
import { takeStep } from '../messages/supervise/next-step.js';
import type { Step } from '../messages/supervise/step.js';
import { expireIfIdle } from '../sessions/session-end.js';

export type RecordActivities = ReturnType<typeof createRecordActivities>;

/** Local activities over the functions of `messages/` and `sessions/`: idempotent, in short transactions. `nextStep` may ask evaluators of policies in between, for up to 15 s. */
export function createRecordActivities(core: MessageCore) {
  return {
    nextStep: async (input: MessageInput): Promise<Step | null> => (await takeStep(core, input, 'workflow')).step,
    cancelByOperator: (input: MessageInput): Promise<void> => cancelIfRunning(core, input, 'canceled by an operator'),
    resolveByOperator: (input: MessageInput, sent: unknown) => resolveByOperator(core, input, sent),
    expireIfIdle: (input: SessionInput) => expireIfIdle(sessionDeps(core), input),
  };
}
