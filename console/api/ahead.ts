/** An answer that nobody has taken by then is old. */
const KEPT_MS = 5_000;
const answers = new Map<string, Promise<unknown>>();

/** Keeps an answer that was asked for before somebody wants it. @param key what was asked for */
export function keepAhead(key: string, answer: Promise<unknown>): void {
  answer.catch(() => answers.delete(key)); // whoever has taken it is told
  answers.set(key, answer);
  setTimeout(() => answers.delete(key), KEPT_MS);
}

/** Gives such an answer to whoever asks for the same first. */
export function takeAhead(key: string): Promise<unknown> | undefined {
  const answer = answers.get(key);
  answers.delete(key);
  return answer;
}
