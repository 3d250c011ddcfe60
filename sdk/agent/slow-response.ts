import type { AgentError } from './agent-error.js';
import { noAnswer } from './describe-error.js';

/** After this long without an answer the address may be a wrong one. */
const NO_ANSWER_MS = 8_000;
/** How long the platform may be silent about a registration or a heartbeat. */
export const SILENCE_MS = 60_000;

/**
 * Waits for an answer of the platform.
 * @param url the API's
 * @param onLate told when the platform takes its time; it is waited for all the same
 */
export async function tellingWhenLate<T>(
  answer: Promise<T>,
  url: string,
  onLate: (trouble: AgentError) => void,
): Promise<T> {
  const late = setTimeout(() => onLate(noAnswer(url)), NO_ANSWER_MS);
  try {
    return await answer;
  } finally {
    clearTimeout(late);
  }
}
