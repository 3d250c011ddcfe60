import type { AgentError } from './agent-error.js';
import { noAnswer } from './describe-error.js';

/** An answer that takes longer is reported: the address may be wrong. */
const SLOW_MS = 8_000;
/** Time limit without any byte from the platform, for a registration or a heartbeat. */
export const SILENCE_MS = 60_000;

/**
 * Waits for an answer of the platform, without a limit of its own.
 * @param url address of the API
 * @param onSlow called once when the answer takes longer than 8 s
 */
export async function warnWhenSlow<T>(
  answer: Promise<T>,
  url: string,
  onSlow: (error: AgentError) => void,
): Promise<T> {
  const timer = setTimeout(() => onSlow(noAnswer(url)), SLOW_MS);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
}
