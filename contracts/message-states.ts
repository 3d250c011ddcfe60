/** The states of a message. Those who list some of them: docs/internals.md#lists-of-states. */
export const MESSAGE_STATES = ['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled'] as const;

/** Whether a message in this state will never change again. */
export function isTerminal(state: string): boolean {
  return state === 'completed' || state === 'failed' || state === 'canceled';
}

/** Whether a message in this state waits for an agent, or an agent has it. */
export function isUnderWay(state: string): boolean {
  return state === 'submitted' || state === 'working';
}

/** Whether a message in this state waits for the answer of a person. */
export function asksPerson(state: string): boolean {
  return state === 'input-required';
}

/** Whether a message in this state has ended without success, and may be sent again. */
export function isRepeatable(state: string): boolean {
  return state === 'failed' || state === 'canceled';
}
