import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/** A run without white space beyond this is counted in pieces: the tokenizer's time grows with the square of a run. */
const RUN_CHARS = 256;
const LONG_RUN = new RegExp(`\\S{${RUN_CHARS}}`);
/** Words that mean something to a model are plain text here. */
const PLAIN = { disallowedSpecial: new Set<string>() };

/** The number of tokens of a text, as language models count them, give or take some for runs without white space. */
export function tokensOf(text: string): number {
  if (!LONG_RUN.test(text)) return countTokens(text, PLAIN);
  let tokens = 0;
  for (let at = 0; at < text.length; at += RUN_CHARS) tokens += countTokens(text.slice(at, at + RUN_CHARS), PLAIN);
  return tokens;
}
